/** The dashboard of Holdfast: it reads and steers one store through the HTTP API. */

import "@xyflow/react/dist/base.css";
import "./styles/index.css";

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ApiError } from "./api/client";
import { LiveProvider } from "./api/live";
import { ActionsProvider } from "./parts/actions";
import { router } from "./routes";
import { applyTheme } from "./shell/theme";

// Dialogs write a style element; the policy of the page takes only those with its nonce.
setNonce(document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "");
applyTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 3,
    },
  },
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <LiveProvider>
        <ActionsProvider>
          <RouterProvider router={router} />
        </ActionsProvider>
      </LiveProvider>
    </QueryClientProvider>
  </StrictMode>,
);
