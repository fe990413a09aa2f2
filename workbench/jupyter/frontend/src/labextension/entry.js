import "./labextension.css";
import { container, NAME } from "./container.js";

globalThis._JUPYTERLAB ??= {};
globalThis._JUPYTERLAB[NAME] = container(document.currentScript.src);
