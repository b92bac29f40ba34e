import { createRoot } from "react-dom/client";
import { Shell } from "./pages/shell.tsx";
import "@xterm/xterm/css/xterm.css";
import "./style/page.css";
import "./style/graph.css";

const place = document.getElementById("page");
if (place === null) throw new Error("index.html has no element `page`");
createRoot(place).render(<Shell />);
