'use strict';

const store = new Store();
const charts = CHARTS.map(kind => new Chart(kind));
const ALL = '\u0000all';  // the choice of all runs, no name of one
let paused = false;
let connected = false;
let drawn = 0;
let still = false;  // a file, with all of its data

const byId = id => document.getElementById(id);

/** The run that is chosen; null for all of them. */
function chosenRun() {
  if (store.runs.size <= 1) return store.runs.values().next().value || null;
  return store.runs.get(byId('run').value) || null;
}

function view() {
  const across = byId('across').value || 'iterations';
  const target = store.document ? store.document.target : null;
  const run = chosenRun();
  if (run !== null) return {run, across, target};
  const panels = (store.document && store.document.panels) || [];
  const panel = panels[Number(byId('panel').value)];
  return {groups: store.groups(panel ? panel.groups : null), across, target};
}

function runText(run) {
  const p = run.progress;
  if (!p) return run.failed === '' ? 'no training yet' : run.failed;
  const within = p.running || run.failed !== '';  // an epoch that is not finished
  const epochs = `epoch ${Math.min(p.epoch + (within ? 1 : 0), p.lastEpoch)} of ${p.lastEpoch}`;
  const batches = p.running && p.batchesPerEpoch ? `, batch ${p.batches} of ${p.batchesPerEpoch}` : '';
  const what = run.failed !== '' ? `ended early in ${epochs}` : p.running ? `${epochs}${batches}` : `finished: ${epochs}`;
  const speed = run.series.has('training/samples per second') && p.running ?
      `, ${numberText(run.last('training/samples per second'))} samples/s` : '';
  const score = run.score === undefined ? '' : `, score ${numberText(run.score)}`;
  return `${what}, iteration ${p.iteration}${score}${speed}, ${p.workers} worker${p.workers === 1 ? '' : 's'}`;
}

function stateText() {
  if (store.runs.size === 0) return still || connected ? 'no training yet' : 'connecting';
  const run = chosenRun();
  const running = [...store.runs.values()].filter(one => one.running).length;
  const line = run !== null ? runText(run) :
      `${store.runs.size} runs of ${store.groups(null).length} arms${running > 0 && !still ? `, ${running} running` : ''}`;
  return still || connected ? line : `the program has ended or cannot be reached; last seen: ${line}`;
}

function showState() {
  byId('state').textContent = (paused ? 'paused: ' : '') + stateText();
  const run = chosenRun();
  const failure = run === null ? '' : run.failed;
  if (byId('failure').textContent !== failure) byId('failure').textContent = failure;
  byId('failure').hidden = failure === '';
  const p = run === null ? null : run.progress;
  byId('progress').hidden = still || p === null;
  if (p === null) return;
  const epochs = p.epoch + (p.batchesPerEpoch ? Math.min(1, p.batches / p.batchesPerEpoch) : 0);
  byId('progress').value = p.lastEpoch > 0 ? Math.min(1, epochs / p.lastEpoch) : 1;
}

/** Puts options into a list, {value: text}; hides it where there is nothing to choose. Shows `value` until the reader
 * chooses: more runs may come, which have another one. */
function fill(id, options, value) {
  const select = byId(id);
  const before = select.dataset.chosen ? select.value : undefined;
  if (JSON.stringify([...select.options].map(o => [o.value, o.text])) !== JSON.stringify(options))
    select.replaceChildren(...options.map(([key, text]) => new Option(text, key)));
  if (options.some(([key]) => key === before)) select.value = before;
  else if (value !== undefined) select.value = value;
  select.parentElement.hidden = options.length < 2;
}

function showChoices() {
  const runs = [...store.runs.keys()];
  fill('run', runs.length < 2 ? [] : [[ALL, 'all, by arm'], ...runs.map(name => [name, name])], ALL);
  const axes = store.axes();
  fill('across', axes.map(name => [name, AXES[name] || name]), runs.length > 1 && axes.includes('samples') ? 'samples' : 'iterations');
  const panels = chosenRun() === null && store.document && store.document.panels || [];
  fill('panel', panels.map((panel, i) => [String(i), panel.name]), '0');
}

function showCurves() {
  const now = view();
  byId('empty').hidden = [...store.runs.values()].some(run => run.series.size > 0);
  if (now.groups === undefined && now.run === null) return;
  for (const chart of charts) {
    const shown = chart.matching(now).length > 0;
    if (!shown) {
      chart.figure.remove();
      continue;
    }
    if (!chart.figure.isConnected) {
      // Charts keep the order of the list, whichever has numbers first.
      const later = charts.slice(charts.indexOf(chart) + 1).find(other => other.figure.isConnected);
      byId('charts').insertBefore(chart.figure, later ? later.figure : null);
    }
    if (!chart.draw(now)) chart.figure.remove();
  }
  const table = now.groups !== undefined && !(store.document && store.document.tables);
  byId('arms').replaceChildren(...(table ? [armsTable(now.groups)] : []));
}

function showLayers() {
  const run = chosenRun();
  const {layers, step} = (run && run.histograms) || {layers: []};
  fill('layer', layers.map((layer, i) => [String(i), layer.name]), '0');
  byId('layer').parentElement.hidden = false;
  byId('layers').hidden = layers.length === 0;
  byId('layers-step').textContent = `after iteration ${step}`;
  const chosen = layers[Number(byId('layer').value)] || layers[0];
  if (!chosen) return;
  drawHistogram('histogram-parameters', chosen.parameters);
  drawHistogram('histogram-update', chosen.update);
  byId('layer-table').replaceChildren(tableOf(
      [['Parameters', 'Numbers', 'Norm', 'Norm of change', 'Change : parameters', 'Not finite'],
       ...layers.map(layer => [layer.name, String(layer.parameters.count), numberText(layer.parameters.norm),
                               numberText(layer.update.norm), numberText(layer.ratio), String(layer.parameters.nonFinite)])],
      'table of layers'));
}

function showNetwork() {
  const run = chosenRun();
  byId('network').hidden = !(run && run.network);
  if (run && run.network) drawNetwork(run.network);
}

function showTexts() {
  const run = chosenRun();
  const blocks = [];
  for (const [name, text] of Object.entries((run && run.texts) || {}))
    blocks.push(element('h2', {}, name.charAt(0).toUpperCase() + name.slice(1)), element('pre', {tabindex: '0'}, text));
  byId('words').replaceChildren(...blocks);
  byId('to-words').hidden = blocks.length === 0;
}

/** Draws what has changed; not while paused, and at most twice per second. */
function show() {
  showState();
  if (paused || store.changed.size === 0 || document.hidden && !still) return;
  const changed = new Set(store.changed);
  store.changed.clear();
  const all = changed.has('runs') || changed.has('choice');
  if (changed.has('document')) {
    showDocument(store.document);
    document.title = store.document.title || 'muster';
    byId('title').textContent = document.title;
  }
  showChoices();
  showState();
  if (all || changed.has('series') || changed.has('document')) showCurves();
  if (all || changed.has('histograms')) showLayers();
  if (all || changed.has('network')) showNetwork();
  if (all || changed.has('texts')) showTexts();
  for (const part of ['layers', 'network']) byId(`to-${part}`).hidden = byId(part).hidden;
  document.documentElement.dataset.drawn = String(++drawn);  // tests wait for it
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  redraw();
}

function redraw() {
  store.changed.add('series');
  if (store.runs.size > 0) show();
}

function toggleTheme() {
  setTheme(theme() === 'dark' ? 'light' : 'dark');
  try {
    localStorage.setItem('theme', theme());
  } catch {
    // Without storage the next visit begins with the system's choice.
  }
}

function togglePause() {
  if (still) return;
  paused = !paused;
  byId('pause').setAttribute('aria-pressed', String(paused));
  byId('pause').textContent = paused ? 'Continue' : 'Pause';
  show();
}

function toggleLog() {
  const chart = charts.find(one => one.kind.score);
  chart.log = !chart.log;
  byId('log').setAttribute('aria-pressed', String(chart.log));
  if (chart.view) chart.draw(chart.view);
}

function resetZoom() {
  for (const chart of charts) if (chart.graph) chart.graph.resetZoom();
}

function connect() {
  const events = new EventSource('/events');
  events.onopen = () => { connected = true; };
  events.onerror = () => { connected = false; };
  events.onmessage = message => [JSON.parse(message.data)].flat().forEach(news => store.add(news));
  setInterval(show, 500);
}

function begin() {
  let chosen = null;
  try {
    chosen = localStorage.getItem('theme');
  } catch {
    // As above.
  }
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  setTheme(chosen === 'dark' || chosen === 'light' ? chosen : dark ? 'dark' : 'light');
  const buttons = {pause: togglePause, reset: resetZoom, log: toggleLog, theme: toggleTheme};
  for (const [id, act] of Object.entries(buttons)) byId(id).addEventListener('click', act);
  document.addEventListener('change', event => { event.target.dataset.chosen = 'true'; }, true);
  byId('layer').addEventListener('change', showLayers);
  for (const id of ['run', 'across', 'panel'])
    byId(id).addEventListener('change', () => {
      store.changed.add('choice');
      show();
    });
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === 'SELECT') return;
    const act = {p: togglePause, r: resetZoom, l: toggleLog, t: toggleTheme}[event.key];
    if (act) act();
  });
  document.addEventListener('visibilitychange', show);

  const data = byId('data');
  still = data !== null;
  if (!still) return connect();
  byId('pause').hidden = true;
  for (const news of JSON.parse(data.textContent)) store.add(news);
  show();
}

begin();
