/** Actions: the dialog that is asked before acting, the toasts that tell what became of it. */

import * as Dialog from "@radix-ui/react-dialog";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";

import { ApiError } from "../api/client";
import type { MarkName } from "../model/marks";
import { Command } from "./pieces";
import { Glyph, Icon } from "./marks";

export interface Consequence {
  mark: MarkName;
  text: string;
}

export interface Question {
  title: string;
  does: Consequence[];
  command?: string;
  note?: string;
  /** The verb and count of the button. */
  button: string;
  danger?: boolean;
  /** Asked for with a text; it may be left out unless it is required. */
  text?: { label: string; placeholder?: string; required?: boolean };
  fields?: ReactNode;
  /** What the server says it would change; asked for as soon as the dialog is open. */
  preview?: () => Promise<Consequence[]>;
  act: (text: string) => Promise<string | void>;
}

interface Toast {
  id: number;
  mark: MarkName;
  text: string;
}

interface Actions {
  ask(question: Question): void;
  tell(text: string, mark?: MarkName): void;
  /** Act at once, and tell what became of it. */
  run(act: () => Promise<unknown>, done: string): Promise<boolean>;
}

const ActionsContext = createContext<Actions | undefined>(undefined);

export function useActions(): Actions {
  const actions = useContext(ActionsContext);
  if (!actions) throw new Error("useActions needs an ActionsProvider");
  return actions;
}

export function describeRefusal(error: unknown): string {
  if (error instanceof ApiError) return `${error.message} (${error.code})`;
  // What `fetch` throws where nobody answers differs from browser to browser.
  if (error instanceof TypeError && /fetch|network|load/i.test(error.message)) return "the server does not answer";
  return String(error);
}

const SHOWN_FOR = 6_000;

export function ActionsProvider({ children }: { children: ReactNode }): ReactNode {
  const [question, setQuestion] = useState<Question>();
  const [toasts, setToasts] = useState<Toast[]>([]);
  const count = useRef(0);

  const tell = useCallback((text: string, mark: MarkName = "done") => {
    count.current += 1;
    const id = count.current;
    setToasts((before) => [...before.slice(-3), { id, mark, text }]);
    setTimeout(() => setToasts((before) => before.filter((each) => each.id !== id)), SHOWN_FOR);
  }, []);

  const run = useCallback(
    async (act: () => Promise<unknown>, done: string) => {
      try {
        await act();
        tell(done);
        return true;
      } catch (error) {
        tell(`Not done: ${describeRefusal(error)}`, "failed");
        return false;
      }
    },
    [tell],
  );

  const actions = useMemo(() => ({ ask: setQuestion, tell, run }), [tell, run]);
  return (
    <ActionsContext.Provider value={actions}>
      {children}
      {question ? (
        <Asked
          question={question}
          close={() => setQuestion(undefined)}
          done={(text) => {
            setQuestion(undefined);
            if (text) tell(text);
          }}
        />
      ) : null}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className="toast">
            <Glyph name={toast.mark} />
            <span>{toast.text}</span>
            <button
              type="button"
              className="btn icon ghost"
              aria-label="Close"
              onClick={() => setToasts((before) => before.filter((each) => each.id !== toast.id))}
            >
              <Icon name="x" />
            </button>
          </div>
        ))}
      </div>
    </ActionsContext.Provider>
  );
}

function Asked(props: { question: Question; close: () => void; done: (text: string | void) => void }): ReactNode {
  const { question, close, done } = props;
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const [previewed, setPreviewed] = useState<Consequence[] | undefined>(question.preview ? undefined : question.does);
  const { preview } = question;
  useEffect(() => {
    let left = false;
    preview?.().then(
      (does) => left || setPreviewed(does),
      (error: unknown) => left || setRefusal(describeRefusal(error)),
    );
    return () => {
      left = true;
    };
  }, [preview]);
  const missing = question.text?.required === true && !text.trim();
  const act = async () => {
    if (missing || busy) return;
    setBusy(true);
    setRefusal("");
    try {
      done(await question.act(text.trim()));
    } catch (error) {
      setRefusal(describeRefusal(error));
      setBusy(false);
    }
  };
  return (
    <Dialog.Root open onOpenChange={(open) => (open ? undefined : close())}>
      <Dialog.Portal>
        <Dialog.Overlay className="scrim" />
        <Dialog.Content
          className="dialog floating"
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            // What is typed first has the focus, else the button that changes nothing.
            event.preventDefault();
            const box = event.currentTarget as HTMLElement;
            box.querySelector<HTMLElement>("textarea, [data-safe]")?.focus();
          }}
        >
          <Dialog.Title className="dialog-title">{question.title}</Dialog.Title>
          <ul className="does">
            {previewed === undefined && !refusal ? <li className="quiet">Asking what it would change</li> : null}
            {previewed?.map((each, at) => (
              <li key={at}>
                <Glyph name={each.mark} />
                <span>{each.text}</span>
              </li>
            ))}
          </ul>
          {question.text ? (
            <label className="stack">
              <span className="medium">{question.text.label}</span>
              <textarea
                className="area"
                rows={3}
                value={text}
                placeholder={question.text.placeholder}
                onChange={(event) => setText(event.target.value)}
                onKeyDown={(event) => {
                  if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void act();
                }}
              />
            </label>
          ) : null}
          {question.fields}
          {question.command ? <Command text={question.command} /> : null}
          {refusal ? (
            <p className="mistake" role="alert">
              <Glyph name="failed" />
              <span>Not done: {refusal}</span>
            </p>
          ) : null}
          <div className="line wrap">
            <span className="small quiet grow">{question.note}</span>
            <Dialog.Close className="btn ghost" data-safe>
              Leave it<kbd className="hide-s">esc</kbd>
            </Dialog.Close>
            <button
              type="button"
              className={`btn ${question.danger ? "danger solid" : "primary"}`}
              aria-disabled={missing || busy}
              onClick={() => void act()}
            >
              {busy ? <Icon name="clock" /> : null}
              {question.button}
            </button>
          </div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

export interface MenuEntry {
  label: string;
  act: () => void;
  danger?: boolean;
  keys?: string;
}
