/** A menu behind a button. */

import * as Dropdown from "@radix-ui/react-dropdown-menu";
import type { ReactNode } from "react";

import type { MenuEntry } from "./actions";

export function Menu(props: {
  trigger: ReactNode;
  /** What it is called, where it shows no text. */
  label?: string;
  className?: string;
  /** What is chosen takes the focus itself; else it goes back to the button. */
  yieldsFocus?: boolean;
  entries: MenuEntry[];
}): ReactNode {
  return (
    <Dropdown.Root modal={false}>
      <Dropdown.Trigger className={props.className ?? "btn icon"} {...(props.label ? { "aria-label": props.label, title: props.label } : {})}>
        {props.trigger}
      </Dropdown.Trigger>
      <Dropdown.Portal>
        <Dropdown.Content className="menu" align="end" sideOffset={4} collisionPadding={8}
          onCloseAutoFocus={(event) => {
            if (props.yieldsFocus) event.preventDefault();
          }}
        >
          {props.entries.map((entry) => (
            <Dropdown.Item
              key={entry.label}
              className={`menu-item${entry.danger ? " danger" : ""}`}
              onSelect={() => entry.act()}
            >
              <span>{entry.label}</span>
              {entry.keys ? <kbd className="hide-s">{entry.keys}</kbd> : null}
            </Dropdown.Item>
          ))}
        </Dropdown.Content>
      </Dropdown.Portal>
    </Dropdown.Root>
  );
}
