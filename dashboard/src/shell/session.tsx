/** Who looks: the name and role of this browser, and what it may do. */

import { createContext, type ReactNode, useContext } from "react";

import type { Session } from "../model/types";

const SessionContext = createContext<Session>({ name: "", role: "viewer" });

export function SessionProvider(props: { session: Session; children: ReactNode }): ReactNode {
  return <SessionContext.Provider value={props.session}>{props.children}</SessionContext.Provider>;
}

export function useSession(): Session & { maySteer: boolean; mayDefine: boolean } {
  const session = useContext(SessionContext);
  return {
    ...session,
    maySteer: session.role === "operator" || session.role === "admin",
    mayDefine: session.role === "admin",
  };
}
