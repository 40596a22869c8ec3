/** Dark or light: what was chosen here, else what the system has. */

const KEY = "holdfast-theme";

export function applyTheme(): void {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset["theme"] = chosen;
}

export function toggleTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset["theme"]
    ? root.dataset["theme"] === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = dark ? "light" : "dark";
  localStorage.setItem(KEY, root.dataset["theme"]);
}
