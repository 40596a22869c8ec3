// A worker in TypeScript, on Node 22.18 or later with nothing to install or to build.
//
// It claims tasks over HTTP, keeps their leases while it works, and reports. Every report carries the
// token of its attempt: a worker that was thought dead and comes back is refused, and changes nothing.
//
// Some work:  holdfast task add "Count" --agent node --payload '{"text": "to be or not to be"}'
// Run it:     HOLDFAST_SERVER=http://127.0.0.1:8765 HOLDFAST_TOKEN=$(holdfast token) node worker.ts

type NodeThatIsNeeded = "22.18 or later"; // a Node that stops at this line is too old for this file
type Task = { id: string; title: string; status: string; payload: { text: string } };
type Assignment = { task: Task; attempt: number; token: string };
type Claimed = { assignments: Assignment[]; told?: "drain" | "evict"; detail?: string };
type Reported = { ok: boolean; task: Task } | { ok: false; code: string; detail: string };
type Kept = { leases: { task_id: string; ok: boolean; reason?: string }[] };

const LEASE = 30;
const WAIT = Number(process.env.WAIT ?? 60);

const missing = ["HOLDFAST_SERVER", "HOLDFAST_TOKEN"].filter((name) => !process.env[name]);
if (missing.length > 0) {
  console.error(`${missing.join(" and ")} must be set, as the top of this file shows`);
  process.exit(1);
}

async function post<T>(path: string, body: object): Promise<T> {
  const answer = await fetch(`${process.env.HOLDFAST_SERVER}/api/v1${path}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${process.env.HOLDFAST_TOKEN}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify(body),
  }).catch((error) => {
    throw new Error(`no server answers at ${process.env.HOLDFAST_SERVER}: ${error.cause ?? error}`);
  });
  // A refusal is an answer too: {"code": "stale_token", …}.
  return { ok: answer.ok, ...(await answer.json()) } as T;
}

function work(task: Task): { words: number } {
  return { words: task.payload.text.split(/\s+/).length };
}

async function carryOut({ task, token }: Assignment): Promise<void> {
  const keeper = setInterval(async () => {
    const leases = [{ task_id: task.id, token }];
    const kept = await post<Kept>("/claims/renew", { leases, lease_seconds: LEASE });
    if (!kept.leases[0].ok) clearInterval(keeper);
  }, (LEASE * 1000) / 3);
  let told: Reported;
  try {
    const output = work(task);
    told = await post<Reported>(`/claims/${task.id}/complete`, { token, output });
  } catch (error) {
    told = await post<Reported>(`/claims/${task.id}/fail`, { token, error: String(error) });
  } finally {
    clearInterval(keeper);
  }
  console.log(task.title, "task" in told ? told.task.status : told.code);
}

while (true) {
  const claimed = await post<Claimed>("/claims", {
    worker: "node-1",
    agents: ["node"],
    wait_seconds: WAIT,
    lease_seconds: LEASE,
    // A claim whose answer was lost may be made again: under the same id it gives the same tasks.
    request_id: crypto.randomUUID(),
  });
  if (claimed.detail !== undefined) throw new Error(claimed.detail);
  if (claimed.assignments.length === 0) {
    console.log(claimed.told ?? "nothing left to do");
    break;
  }
  await Promise.all(claimed.assignments.map(carryOut));
}

export {};
