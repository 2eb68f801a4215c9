'use strict';

// Okabe and Ito's colours, which the colour-blind tell apart, in the order of their contrast; strokes differ, too.
const COLOURS = {
  light: ['#0072b2', '#d55e00', '#007f5f', '#b3478f', '#8a6d00', '#3b8fc2', '#7a3b00', '#555555'],
  dark: ['#56b4e9', '#e69f00', '#2fc39a', '#e08fbf', '#f0e442', '#8ab8ff', '#ff8a4c', '#b5b5b5'],
};
const STROKES = [null, [7, 3], [2, 2], [9, 3, 2, 3]];

const theme = () => document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light';
const cssColour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** What is drawn: names of curves by a pattern; `short` is what the legend calls one. */
const CHARTS = [
  {title: 'Score', match: /^score\/(merged|worker \d+)$/, score: true, first: 'score/merged'},
  {title: 'Score of each epoch', match: /^score\/epoch$/, points: true},
  {title: 'Accuracy', unit: 'on test data', match: /^test\/accuracy$/, points: true},
  {title: 'Test loss', match: /^test\/loss$/, points: true},
  {title: 'Distance of the replicas', unit: 'from their mean before a merge, relative', match: /^merge\/divergence$/},
  {title: 'Learning rate', match: /^training\/learning rate$/},
  {title: 'Speed', unit: 'samples a second', match: /^training\/samples per second$/},
  {title: 'Time of all workers', match: /^time\/all\//, stacked: true},
  {title: 'Time of worker', match: /^time\/worker 0\//, stacked: true, choice: /^time\/worker (\d+)\//},
  {title: 'Time of a merge', unit: 'milliseconds', match: /^merge\/milliseconds$/},
  {title: 'Sent by a worker in a merge', unit: 'bytes', match: /^merge\/bytes$/, text: bytesText},
  {title: 'Memory of the process', unit: 'bytes', match: /^memory\//, text: bytesText},
  {title: 'Change to parameters', unit: 'norms of a round, log', match: /^ratio\//, log: true},
  {title: 'Norms of the parameters', unit: 'log', match: /^norm\//, log: true},
  {title: 'What the strategy tells', match: /^merge\/(?!divergence$|milliseconds$|bytes$)/},
  {title: 'More', match: /^(?!score\/|test\/|merge\/|training\/|time\/|memory\/|ratio\/|norm\/)/},
];

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const shortName = name => name.slice(name.indexOf('/') + 1).replace(/^(all|worker \d+)\/(?=.)/, '');

// The names are below the plots. dygraphs' own legend would need inline styles, which the page's policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);

class Chart {
  constructor(kind) {
    this.kind = kind;
    this.names = [];
    this.hidden = new Set();
    this.log = Boolean(kind.log);
    this.match = kind.match;
    const caption = element('figcaption', {}, kind.title);
    if (kind.choice) this.select = element('select', {'aria-label': 'worker'});
    if (this.select) {
      caption.append(' ', this.select);
      this.select.addEventListener('change', () => {
        this.match = new RegExp(`^time/worker ${Number(this.select.value)}/`);
        this.draw(this.store);
      });
    }
    if (kind.unit) caption.append(' ', element('span', {class: 'unit'}, kind.unit));
    this.plot = element('div', {class: 'plot', tabindex: '0', role: 'img', 'aria-label': kind.title});
    this.keys = element('div', {class: 'keys'});
    this.figure = element('figure', {}, caption, this.plot, this.keys);
    this.plot.addEventListener('keydown', event => this.key(event));
  }

  matching(store) {
    const shown = name => !this.kind.log || store.series.get(name).values.some(value => value > 0);
    const names = [...store.series.keys()].filter(name => this.match.test(name) && shown(name));
    names.sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
    if (this.kind.first && names.includes(this.kind.first))  // drawn last, above the others
      names.push(...names.splice(names.indexOf(this.kind.first), 1));
    return names;
  }

  colour(index) {
    return this.names[index] === this.kind.first ? cssColour('--merged') : COLOURS[theme()][index % 8];
  }

  stroke(index) {
    return this.kind.stacked || this.names[index] === this.kind.first ? null : STROKES[Math.floor(index / 2) % STROKES.length];
  }

  fillChoice(store) {
    const workers = new Set();
    for (const name of store.series.keys()) {
      const found = this.kind.choice.exec(name);
      if (found) workers.add(Number(found[1]));
    }
    for (const worker of [...workers].sort((a, b) => a - b))
      if (![...this.select.options].some(option => Number(option.value) === worker))
        this.select.add(new Option(String(worker), String(worker)));
  }

  /** @return whether there is anything to draw. */
  draw(store) {
    this.store = store;
    if (this.select) this.fillChoice(store);
    const names = this.matching(store);
    if (names.length === 0) return false;
    const same = this.graph && names.length === this.names.length && names.every((n, i) => n === this.names[i]);
    this.names = names;
    const rows = this.rows(store);
    this.bad = rows.filter(row => row.some(Number.isNaN)).map(row => row[0]);
    if (same) {
      this.graph.updateOptions({file: rows});
      this.showValues(null);
    } else {
      this.build(rows);
    }
    const told = names.slice(0, 8).map(n => `${shortName(n)} ${this.text(store.last(n))}`).join(', ');
    this.plot.setAttribute('aria-label', `${this.kind.title}, newest: ${told}`);
    return true;
  }

  /** Rows of the store; on a logarithmic axis without what it cannot show. */
  rows(store) {
    const rows = store.rows(this.names);
    if (!this.log) return rows;
    return rows.map(row => row.map((value, column) => column > 0 && value !== null && value <= 0 ? null : value));
  }

  text(value) {
    if (this.kind.stacked && Number.isFinite(value)) return `${(100 * value).toFixed(value > 0.0995 ? 0 : 1)} %`;
    return (this.kind.text || numberText)(value);
  }

  /** Draws anew, as after a change of theme. */
  rebuild() {
    if (this.graph) this.build(this.rows(this.store));
  }

  build(rows) {
    const range = this.graph && this.graph.isZoomed() ? this.graph.xAxisRange() : null;
    if (this.graph) this.graph.destroy();
    const series = {};
    this.names.forEach((name, i) => {
      series[name] = {strokeWidth: name === this.kind.first ? 2.2 : 1.4, strokePattern: this.stroke(i)};
    });
    this.graph = new Dygraph(this.plot, rows, {
      labels: ['iteration', ...this.names],
      colors: this.names.map((_, i) => this.colour(i)),
      series,
      visibility: this.names.map(name => !this.hidden.has(name)),
      connectSeparatedPoints: true,
      stackedGraph: Boolean(this.kind.stacked),
      fillAlpha: 0.55,
      drawPoints: Boolean(this.kind.points),
      pointSize: 2.5,
      drawGapEdgePoints: true,
      includeZero: this.kind.stacked || false,
      valueRange: this.kind.stacked ? [0, 1.001] : null,
      logscale: this.log,
      gridLineColor: cssColour('--grid'),
      axisLineColor: cssColour('--line'),
      axisLabelFontSize: 12,
      rightGap: 12,
      xRangePad: 5,
      axes: {
        x: {pixelsPerLabel: 64, axisLabelFormatter: value => Number.isInteger(value) ? String(value) : ''},
        y: {pixelsPerLabel: 28, axisLabelWidth: 58, axisLabelFormatter: value => this.text(value)},
      },
      highlightCircleSize: 3,
      highlightCallback: (event, x, points, row) => this.showValues(row),
      unhighlightCallback: () => this.showValues(null),
      underlayCallback: (canvas, area, graph) => this.markBad(canvas, area, graph),
    });
    if (range) this.graph.updateOptions({dateWindow: range});
    this.buildKeys();
  }

  /** A cross at the top for each step at which a curve is no number. */
  markBad(canvas, area, graph) {
    canvas.strokeStyle = cssColour('--ink');
    canvas.lineWidth = 1.5;
    for (const step of this.bad || []) {
      const x = graph.toDomXCoord(step);
      if (x < area.x || x > area.x + area.w) continue;
      const y = area.y + 7;
      canvas.beginPath();
      canvas.moveTo(x - 4, y - 4);
      canvas.lineTo(x + 4, y + 4);
      canvas.moveTo(x - 4, y + 4);
      canvas.lineTo(x + 4, y - 4);
      canvas.stroke();
    }
  }

  buildKeys() {
    this.keys.replaceChildren();
    this.values = [];
    this.names.forEach((name, i) => {
      const line = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
      const stroke = document.createElementNS('http://www.w3.org/2000/svg', 'line');
      const attributes = {x1: 0, x2: 26, y1: 5, y2: 5, stroke: this.colour(i), 'stroke-width': this.kind.stacked ? 9 : 3};
      if (this.stroke(i)) attributes['stroke-dasharray'] = this.stroke(i).join(' ');
      for (const [key, value] of Object.entries(attributes)) stroke.setAttribute(key, value);
      line.append(stroke);
      line.setAttribute('aria-hidden', 'true');
      const value = element('span', {class: 'value'});
      this.values.push(value);
      const button = element('button', {type: 'button', 'aria-pressed': String(!this.hidden.has(name))}, line,
                             shortName(name), value);
      button.addEventListener('click', () => {
        const shown = this.hidden.delete(name);
        if (!shown) this.hidden.add(name);
        button.setAttribute('aria-pressed', String(shown));
        this.graph.setVisibility(i, shown);
      });
      this.keys.append(button);
    });
    this.showValues(null);
  }

  /** The values of a row, or the newest ones, beside the names. */
  showValues(row) {
    this.names.forEach((name, i) => {
      const value = row === null ? this.store.last(name) : this.graph.getValue(row, i + 1);
      this.values[i].textContent = value === null && row !== null ? '' : this.text(value);
    });
  }

  key(event) {
    if (!this.graph) return;
    const [whole0, whole1] = this.graph.xAxisExtremes();
    const [from, to] = this.graph.xAxisRange();
    const width = to - from;
    const zoom = {'+': 0.7, '=': 0.7, '-': 1 / 0.7}[event.key];
    const move = {ArrowLeft: -0.2, ArrowRight: 0.2}[event.key];
    let next = null;
    if (zoom) next = [(from + to) / 2 - width * zoom / 2, (from + to) / 2 + width * zoom / 2];
    if (move) next = [from + move * width, to + move * width];
    if (event.key === '0') this.graph.resetZoom();
    if (next && next[1] > whole0 && next[0] < whole1) this.graph.updateOptions({dateWindow: next});
    if (next || event.key === '0') event.preventDefault();
  }
}
