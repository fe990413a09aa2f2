// The Workbench in JupyterLab: a tile, commands, the Lab in a tab, runs in the side panel and a word in the status bar.

import { el, say } from "../dom.js";
import { baseOf, Server } from "../server.js";
import { besideOf, idOf } from "./beside.js";
import { LabKernel, NAME } from "./lab_kernel.js";
import { LabTab, tabOf } from "./lab_tab.js";
import { openInLab } from "./open_labs.js";
import { RunList, summaryOf } from "./run_list.js";
import { watchRun } from "./run_tab.js";
import { RunsView } from "./runs_panel.js";
import { hearStartAgain, markWithoutKernel } from "./start_again.js";
import { TABS } from "./tabs.js";

const OPEN = "workbench:open";
const BESIDE = "workbench:open-beside";
const WATCH = "workbench:watch";
const RUNS = "workbench:show-runs";
const PANEL = "workbench-runs";
const TICK_MS = 1000;
// Two falling curves over an axis; the classes take JupyterLab's colours.
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16"><g style="fill:none" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">' +
  '<path class="jp-icon3" stroke="#616161" d="M4 3v17h17"/><path class="jp-icon3" stroke="#616161" d="M7.500 5c1.500 6 4 9 13 9.500"/><path class="jp-icon3" stroke="#616161" d="M12.500 5c.8 2.500 3 4.500 8 5"/></g></svg>';

/** @param {object} lab JupyterLab's modules; @param {string} address of the extension's script */
export function plugin(lab, address) {
  const { application, apputils, launcher, notebook, rendermime, statusbar } = lab;
  return {
    id: "workbench:labextension",
    description: "The Workbench: a tile, the Lab in a tab, runs in the side panel and in the status bar.",
    autoStart: true,
    requires: [rendermime.IRenderMimeRegistry],
    optional: [
      application.ILabShell,
      application.ILayoutRestorer,
      launcher.ILauncher,
      apputils.ICommandPalette,
      statusbar.IStatusBar,
      notebook.INotebookTracker,
      apputils.IKernelStatusModel,
      apputils.ISessionContextDialogs,
    ],
    activate(app, renderers, shell, restorer, tiles, palette, bar, notebooks, kernelStatus, dialogs) {
      // One document fills the page there: nothing that this could be added to.
      if (!shell) return;
      const page = new Dock({ lab, app, shell, address });
      page.addStyle();
      page.addLab(renderers, dialogs, kernelStatus, notebooks);
      page.addRuns(bar);
      page.addCommands(tiles, palette);
      page.takeConsole();
      page.restore(restorer);
    },
  };
}

class Dock {
  constructor(page) {
    Object.assign(this, page);
    this.icon = new this.lab["ui-components"].LabIcon({ name: "workbench:icon", svgstr: ICON });
    this.server = new Server(baseOf(document), { cookies: () => document.cookie });
    const tracker = (namespace) => new this.lab.apputils.WidgetTracker({ namespace });
    this.labs = tracker("workbench-lab");
    this.beside = tracker("workbench-beside");
    this.watched = tracker("workbench-watch");
  }

  addStyle() {
    const { href, search } = new URL(this.address);
    document.head.append(el("link", { rel: "stylesheet", href: new URL(`remoteEntry.css${search}`, href).href }));
  }

  addLab(renderers, dialogs, kernelStatus, notebooks) {
    const { lab, app } = this;
    this.notebooks = notebooks;
    this.tab = new LabTab(lab, new LabKernel(lab, app.serviceManager, renderers), dialogs);
    const ours = (widget) => widget && (this.labs.has(widget) || this.beside.has(widget));
    kernelStatus?.addSessionProvider((widget) => (ours(widget) ? widget.sessionContext : null));
    if (!notebooks) return;
    const panelOf = (node) => notebooks.find((panel) => panel.node.contains(node));
    hearStartAgain(lab, panelOf);
    markWithoutKernel(notebooks);
    globalThis[TABS] = {
      has: (node) => Boolean(panelOf(node)),
      open: (node, model) => app.commands.execute(BESIDE, { path: panelOf(node).context.path, model }),
    };
  }

  addRuns(bar) {
    const { Widget } = this.lab.widgets;
    const list = new RunList(this.server, { reading: () => this.panel.isVisible });
    const { commands } = this.app;
    const view = new RunsView(list, ({ run, kernels, name }) => this.#opened(kernels) || commands.execute(WATCH, { run, name }), () => commands.execute(OPEN));
    this.panel = new Widget({ node: view.root });
    this.panel.id = PANEL;
    Object.assign(this.panel.title, { icon: this.icon, caption: "Runs of the Workbench" });
    this.shell.add(this.panel, "left", { rank: 350 });
    const button = el("button", { type: "button", class: "wb-dock-status", title: "Show the runs of the Workbench", on: { click: () => commands.execute(RUNS) } });
    const item = new Widget({ node: el("div", { class: "wb-dock-bar wb-theme" }, button) });
    bar?.registerStatusItem("workbench:training", { item, align: "left", rank: 20, isActive: () => list.heard === true });
    list.listeners.add(() => {
      say(button, summaryOf(list.counts));
      item.setHidden(list.heard !== true);
    });
    item.setHidden(true);
    setInterval(() => list.tick(), TICK_MS);
  }

  addCommands(tiles, palette) {
    const { commands } = this.app;
    commands.addCommand(OPEN, {
      label: ({ isPalette }) => (isPalette ? "Open Workbench" : "Workbench"),
      caption: "Compose, launch and watch pre-training runs",
      icon: ({ isPalette }) => (isPalette ? undefined : this.icon),
      execute: () => this.#shown(this.tab.open(this.icon), this.labs),
    });
    commands.addCommand(BESIDE, { label: "Open a Notebook's Lab", isVisible: () => false, execute: (args) => this.#openBeside(args) });
    commands.addCommand(WATCH, {
      label: "Watch a Run",
      isVisible: () => false,
      execute: ({ run, name }) => this.#shown(this.#watch(run, name), this.watched),
    });
    commands.addCommand(RUNS, { label: "Show Runs", caption: "All runs, with or without a kernel", execute: () => this.shell.activateById(PANEL) });
    // A category of its own: the first tile of "Other" would lend its icon to all of them.
    tiles?.add({ command: OPEN, category: "Workbench" });
    for (const command of [OPEN, RUNS]) palette?.addItem({ command, category: "Workbench", args: { isPalette: true } });
  }

  /** A click on the Lab's kernel among those that run opens the Lab; JupyterLab knows no other way to be told. */
  takeConsole() {
    const { commands } = this.app;
    const execute = commands.execute.bind(commands);
    commands.execute = (id, args) => (id === "console:open" && args?.path === NAME ? execute(OPEN) : execute(id, args));
  }

  restore(restorer) {
    restorer?.add(this.panel, PANEL);
    restorer?.restore(this.labs, { command: OPEN, name: () => "lab" });
    restorer?.restore(this.beside, { command: BESIDE, args: ({ beside }) => beside, name: ({ beside }) => beside.model });
    restorer?.restore(this.watched, { command: WATCH, args: ({ watch }) => watch, name: ({ watch }) => watch.run });
  }

  /** The Lab of a cell in a tab; nothing where its notebook is not open, as when a page comes back without it. */
  async #openBeside({ path, model }) {
    const { lab, shell, notebooks, icon } = this;
    const there = this.beside.find((tab) => tab.id === idOf(model));
    if (there) return this.#shown(there, this.beside);
    await notebooks?.restored;
    const panel = notebooks?.find(({ context }) => context.path === path);
    if (!panel) return null;
    const tab = besideOf(lab, panel, model, icon, () => shell.activateById(panel.id));
    return this.#shown(tab, this.beside, { ref: panel.id, mode: "tab-after" });
  }

  /** A run in a Lab that is open; false where none can show it. */
  #opened(run) {
    const widget = openInLab(this.shell.widgets("main"), run, this.tab.widget);
    if (widget) this.shell.activateById(widget.id);
    return Boolean(widget);
  }

  /** A run in a tab of its own; the one that is there, where it is. */
  #watch(run, name) {
    const id = `workbench-watch-${run}`;
    const there = this.watched.find((tab) => tab.id === id);
    if (there) return there;
    const host = el("div", { class: "wb-dock-watch wb-theme" });
    const content = new this.lab.widgets.Widget({ node: host });
    const tab = tabOf(this.lab, content, { id, label: name, icon: this.icon, caption: `Run ${run.split("/")[1]}` });
    tab.watch = { run, name };
    const view = watchRun(run, host, this.address);
    view.catch((error) => say(host, `The run cannot be shown: ${error.message}`));
    tab.disposed.connect(() => view.then((end) => end(), () => {}));
    return tab;
  }

  #shown(tab, tracker, place = {}) {
    if (!tab.isAttached) this.shell.add(tab, "main", place);
    if (!tracker.has(tab)) tracker.add(tab);
    this.shell.activateById(tab.id);
    return tab;
  }
}
