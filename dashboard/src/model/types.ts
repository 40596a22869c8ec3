/** What the API answers. Fields without a value are absent. */

export interface Usage {
  usd?: number;
  [name: string]: number | undefined;
}

export interface Progress {
  done: number;
  total: number;
}

export interface Budget {
  usd?: number;
  attempts?: number;
  used?: { usd?: number; attempts?: number };
}

export interface Failure {
  type?: string;
  message?: string;
  traceback?: string[];
}

export interface Run {
  id: string;
  workflow: string;
  workflow_version: string;
  key?: string;
  title?: string;
  labels?: Record<string, string>;
  parent_id?: string;
  root_id?: string;
  status: string;
  holds: string[];
  input?: unknown;
  output?: unknown;
  error?: Failure | string;
  version: number;
  generation: number;
  created_at: string;
  finished_at?: string;
  deadline?: string;
  scheduled_for?: string;
  usage?: Usage;
  budget?: Budget;
  progress?: Progress;
  branch?: string;
  commit?: string;
  needs_you?: Task[];
  tasks?: Task[];
}

export interface Task {
  id: string;
  kind: string;
  run_id?: string;
  parent_id?: string;
  step?: string;
  item?: number;
  calls?: string;
  title: string;
  agent: string;
  status: string;
  state: string;
  planning_phase: string;
  blocked_by: string[];
  holds: string[];
  held_until?: string;
  skipped: boolean;
  superseded?: boolean;
  attempt: number;
  failures: number;
  max_attempts: number;
  lost: number;
  max_lost: number;
  round?: number;
  max_rounds?: number;
  generation: number;
  priority: number;
  position: number;
  scheduled_for?: string;
  waits_for?: string;
  tags: string[];
  labels?: Record<string, string>;
  key?: string;
  timeout?: number;
  payload?: unknown;
  output?: unknown;
  error?: Failure | string;
  progress?: unknown;
  question?: unknown;
  feedback?: unknown;
  lease?: { owner: string; expires_at: string };
  usage?: Usage;
  version: number;
  created_at: string;
  started_at?: string;
  finished_at?: string;
  address?: string;
  commit?: string;
  /** The run that it called, with its tasks. */
  child?: Run;
}

export interface Event {
  seq: number;
  type: string;
  run_id?: string;
  task_id?: string;
  step?: string;
  title?: string;
  version: number;
  generation?: number;
  attempt: number;
  actor: string;
  at: string;
  data?: Record<string, unknown>;
  from?: string;
  to?: string;
}

export interface Attempt {
  task_id: string;
  attempt: number;
  owner: string;
  claimed_at: string;
  ended_at?: string;
  outcome?: string;
  digest?: string;
  error?: Failure | string;
  usage?: Usage;
  stopped_at?: string;
}

export interface Clause {
  name: string;
  ok: boolean;
  detail: string;
  more?: string[];
}

export interface Why {
  id: string;
  status: string;
  state?: string;
  summary: string;
  clauses?: Clause[];
  tasks?: { id: string; state: string; line: string; others?: string; alike?: string[] }[];
  traceback?: string[];
  fixes: string[];
  looks: string[];
}

export interface Page<T> {
  items: T[];
  next?: string;
}

export interface Worker {
  name: string;
  agents: string[];
  tags: string[];
  concurrency: number;
  used: number;
  free: number;
  told?: string;
  pausing?: boolean;
  started_at: string;
  seen_at: string;
  running: { task_id: string; run_id?: string; name: string; attempt: number; began_at: string }[];
}

export interface Statistics {
  agents: Record<string, Record<string, number>>;
  runs: Record<string, number>;
  workers: number;
  conflicts: number;
}

export interface Schedule {
  name: string;
  cron: string;
  zone: string;
  missed: string;
  workflow?: string;
  paused?: boolean;
  next_at?: string;
  last_at?: string;
  last_error?: string;
}

export interface WorkflowEntry {
  name: string;
  version: string;
  created_at: string;
  versions: string[];
}

export interface JsonSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  format?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  additionalProperties?: boolean | JsonSchema;
}

export interface Step {
  id: string;
  agent?: string;
  title?: string;
  needs?: string[];
  for_each?: string;
  parallel?: number;
  steps?: Step[];
  verifies?: string;
  max_rounds?: number;
  approval?: string;
  on_failure?: string | [string, string | null, number];
  work?: { command?: string[]; prompt?: string; workflow?: string; url?: string; [name: string]: unknown };
}

export interface Workflow {
  name: string;
  version: string;
  declared?: { input?: JsonSchema };
  steps: Step[];
}

export interface Session {
  name: string;
  role: string;
  csrf?: string;
  expires_at?: string;
}

export interface BusGroup {
  channel: string;
  group: string;
  lag: number;
  waiting: number;
  parked: number;
  readers: { name: string; since: string; partitions: number }[];
}

export interface ParkedMessage {
  handler: string;
  message_id: string;
  type?: string;
  error?: string;
  attempts?: number;
  parked_at?: string;
  [name: string]: unknown;
}
