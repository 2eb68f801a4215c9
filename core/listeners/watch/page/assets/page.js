'use strict';

const store = new Store();
const charts = CHARTS.map(kind => new Chart(kind));
let paused = false;
let connected = false;
let drawn = 0;

const byId = id => document.getElementById(id);

function stateText() {
  const p = store.progress;
  if (!p) return connected ? 'no training yet' : 'connecting';
  const epochs = `epoch ${Math.min(p.epoch + (p.running ? 1 : 0), p.lastEpoch)} of ${p.lastEpoch}`;
  const batches = p.running && p.batchesPerEpoch ? `, batch ${p.batches} of ${p.batchesPerEpoch}` : '';
  const what = p.running ? `${epochs}${batches}` : `finished: ${epochs}`;
  const speed = store.series.has('training/samples per second') && p.running ?
      `, ${numberText(store.last('training/samples per second'))} samples/s` : '';
  const score = store.series.has('score/merged') ? `, score ${numberText(store.last('score/merged'))}` : '';
  const line = `${what}, iteration ${p.iteration}${score}${speed}, ${p.workers} worker${p.workers === 1 ? '' : 's'}`;
  return connected ? line : `the program has ended or cannot be reached; last seen: ${line}`;
}

function showState() {
  byId('state').textContent = (paused ? 'paused: ' : '') + stateText();
  const p = store.progress;
  if (!p) return;
  const epochs = p.epoch + (p.batchesPerEpoch ? Math.min(1, p.batches / p.batchesPerEpoch) : 0);
  byId('progress').value = p.lastEpoch > 0 ? Math.min(1, epochs / p.lastEpoch) : 1;
}

function showCurves() {
  for (const chart of charts) {
    const attached = chart.figure.isConnected;
    if (!attached && chart.matching(store).length > 0) {
      // Charts keep the order of the list, whichever has numbers first.
      const later = charts.slice(charts.indexOf(chart) + 1).find(other => other.figure.isConnected);
      byId('charts').insertBefore(chart.figure, later ? later.figure : null);
    }
    chart.draw(store);
  }
  byId('empty').hidden = store.series.size > 0;
}

function showLayers() {
  const {layers, step} = store.histograms;
  const select = byId('layer');
  if (select.options.length !== layers.length) {
    select.replaceChildren(...layers.map((layer, i) => new Option(layer.name, String(i))));
  }
  byId('layers').hidden = layers.length === 0;
  byId('layers-step').textContent = `after iteration ${step}`;
  const chosen = layers[Number(select.value)] || layers[0];
  if (!chosen) return;
  drawHistogram('histogram-parameters', chosen.parameters);
  drawHistogram('histogram-update', chosen.update);
  byId('layer-table').tBodies[0].replaceChildren(...layers.map(layer => element('tr', {},
      element('td', {}, layer.name), element('td', {}, String(layer.parameters.count)),
      element('td', {}, numberText(layer.parameters.norm)), element('td', {}, numberText(layer.update.norm)),
      element('td', {}, numberText(layer.ratio)), element('td', {}, String(layer.parameters.nonFinite)))));
}

function showTexts() {
  const blocks = [];
  for (const [name, text] of Object.entries(store.texts))
    blocks.push(element('h2', {}, name[0].toUpperCase() + name.slice(1)), element('pre', {tabindex: '0'}, text));
  byId('words').replaceChildren(...blocks);
}

/** Draws what has changed; not while paused, and no oftener than twice a second. */
function show() {
  showState();
  if (paused || store.changed.size === 0 || document.hidden) return;
  const changed = new Set(store.changed);
  store.changed.clear();
  if (changed.has('series')) showCurves();
  if (changed.has('histograms')) showLayers();
  if (changed.has('network')) {
    byId('network').hidden = false;
    drawNetwork(store.network);
  }
  if (changed.has('texts')) showTexts();
  document.documentElement.dataset.drawn = String(++drawn);  // tests wait for it
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  for (const chart of charts) chart.rebuild();
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
  paused = !paused;
  byId('pause').setAttribute('aria-pressed', String(paused));
  byId('pause').textContent = paused ? 'Go on' : 'Pause';
  show();
}

function toggleLog() {
  const chart = charts.find(one => one.kind.score);
  chart.log = !chart.log;
  byId('log').setAttribute('aria-pressed', String(chart.log));
  chart.rebuild();
}

function resetZoom() {
  for (const chart of charts) if (chart.graph) chart.graph.resetZoom();
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
  byId('layer').addEventListener('change', showLayers);
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === 'SELECT') return;
    const act = {p: togglePause, r: resetZoom, l: toggleLog, t: toggleTheme}[event.key];
    if (act) act();
  });
  document.addEventListener('visibilitychange', show);

  const events = new EventSource('/events');
  events.onopen = () => { connected = true; };
  events.onerror = () => { connected = false; };
  events.onmessage = message => store.add(JSON.parse(message.data));
  setInterval(show, 500);
}

begin();
