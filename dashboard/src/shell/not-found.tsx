import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { Empty } from "../parts/pieces";

export function NotFound(): ReactNode {
  return (
    <div className="page">
      <Empty icon="search" title="There is no such page">
        <p>
          <Link to="/" className="link">
            To the inbox
          </Link>
        </p>
      </Empty>
    </div>
  );
}
