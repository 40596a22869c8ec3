import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/holdfast/server/dashboard_files",
    emptyOutDir: true,
    // A data: URL would need a hole in the policy that the server sends.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
