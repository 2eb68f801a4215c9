'use strict';

// The first are Okabe and Ito's. Any two, and the ink of what is merged, differ by at least 10 (CIE76) to the eye and in
// Machado's models of the three kinds of colour blindness (2009), and all by 3 : 1 from the panel; strokes differ, too.
const COLOURS = {
  light: ['#0072b2', '#d55e00', '#007f5f', '#b3478f', '#140385', '#900aec', '#7a3b00', '#45004e'],
  dark: ['#56b4e9', '#e69f00', '#2fc39a', '#e08fbf', '#ace692', '#d11e2b', '#ff8a4c', '#8a3eff'],
};
const STROKES = [null, [7, 3], [2, 2], [9, 3, 2, 3], [14, 3], [5, 2, 1, 2, 1, 2], [1, 3], [12, 2, 4, 2]];

const theme = () => document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light';
const cssColour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Accuracies by the logarithm of the error, so that 98 to 99 % is as far as 80 to 90 %. */
const ACCURACY = {
  to: accuracy => -Math.log10(Math.min(2, Math.max(1 - accuracy, 1e-5))),
  from: place => 1 - 10 ** -place,
  ticks: [0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999],
};

/** What marks on the time axis mean. */
const MARKS = {
  resynchronisation: 'a resynchronisation of shared gradients: the model now includes what messages had withheld, so ' +
      'curves may jump there',
  restored: 'early stopping has restored the best model, and the last point is of it',
};

/** What is drawn: names of curves by a pattern; `arm` is the one that arms are compared by. */
const CHARTS = [
  {title: 'Score', match: /^score\/(merged|worker \d+)$/, score: true, first: 'score/merged', arm: 'score/merged',
   marks: true},
  {title: 'Score of each epoch', match: /^score\/epoch$/, points: true, arm: 'score/epoch'},
  ...Object.entries({test: 'on test data', validation: 'on validation data, held out from the training'}).flatMap(
      ([data, unit]) => [
        {title: 'Accuracy', unit: `${unit}, spaced by the logarithm of the error`, match: new RegExp(`^${data}/accuracy$`),
         points: true, scale: ACCURACY, text: percentText, arm: `${data}/accuracy`, marks: true},
        {title: 'R2', unit, match: new RegExp(`^${data}/r2$`), points: true, arm: `${data}/r2`, marks: true},
        {title: 'Loss', unit: `${unit}, log`, match: new RegExp(`^${data}/loss$`), points: true, log: true,
         arm: `${data}/loss`, marks: true},
      ]),
  {title: 'Distance of the replicas', unit: 'from their mean before a merge, relative', match: /^merge\/divergence$/,
   arm: 'merge/divergence', marks: true},
  {title: 'Learning rate', match: /^training\/learning rate$/, arm: 'training/learning rate'},
  {title: 'Speed', unit: 'samples per second', match: /^training\/samples per second$/, arm: 'training/samples per second'},
  {title: 'Projected speed', unit: 'samples per second, log', match: /^projection\//, across: 'workers', log: true,
   logAcross: true, points: true, arm: 'projection/samples per second'},
  {title: 'Time of all workers', match: /^time\/all\//, stacked: true},
  {title: 'Time of worker', match: /^time\/worker 0\//, stacked: true, choice: /^time\/worker (\d+)\//},
  {title: 'Time of a merge', unit: 'milliseconds', match: /^merge\/milliseconds$/, arm: 'merge/milliseconds'},
  {title: 'Sent by a worker in a merge', unit: 'bytes', match: /^merge\/bytes$/, text: bytesText, arm: 'merge/bytes'},
  {title: 'Memory of the process', unit: 'bytes', match: /^memory\//, text: bytesText, arm: 'memory/resident bytes'},
  {title: 'Change to parameters', unit: 'norms of a round, log', match: /^ratio\//, log: true},
  {title: 'Norms of the parameters', unit: 'log', match: /^norm\//, log: true},
  {title: 'What the strategy reports', match: /^merge\/(?!divergence$|milliseconds$|bytes$)/},
  {title: 'More', match: /^(?!score\/|test\/|validation\/|merge\/|training\/|time\/|memory\/|ratio\/|norm\/|projection\/|at\/|mark\/)/},
];

const AXES = {
  iterations: 'iterations', samples: 'samples trained, all workers', seconds: 'seconds of training', bytes: 'bytes sent by a worker',
  workers: 'workers',
};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const shortName = name => name.slice(name.indexOf('/') + 1).replace(/^(all|worker \d+)\/(?=.)/, '');

// The names are below the plots. dygraphs' own legend would need inline styles, which the page's policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);

/** One finger scrolls the page, also over a chart; two zoom it. */
const byTwoFingers = act => (event, graph, context) => {
  if (event.touches.length > 1) act(event, graph, context);
};
const INTERACTION = {...Dygraph.defaultInteractionModel};
for (const touch of ['touchstart', 'touchmove', 'touchend']) INTERACTION[touch] = byTwoFingers(INTERACTION[touch]);

/** dygraphs' ticks; where fewer than two of them have a number, some between the ends, which are whole for iterations.
 *  dygraphs has powers of ten alone on a short logarithmic axis, and halves between iterations. */
const tickerOf = (text, {log = false, whole = false}) => (from, to, pixels, options, graph, values) => {
  const ticks = Dygraph.numericTicks(from, to, pixels, options, graph, values);
  if (ticks.filter(({v, label}) => label && v >= from && v <= to).length > 1) return ticks;
  const at = share => log ? from * (to / from) ** share : from + share * (to - from);
  const places = [0.1, 0.37, 0.63, 0.9].map(share => whole ? Math.round(at(share)) : at(share));
  return [...new Set(places)].filter(v => v >= from && v <= to).map(v => ({v, label: text(v)}));
};

/** Rows [place, value of each curve] over all places. null: nothing there. */
function joined(curves) {
  const rows = new Map();
  curves.forEach((curve, column) => {
    for (const [x, value] of curve) {
      let row = rows.get(x);
      if (row === undefined) {
        row = new Array(curves.length + 1).fill(null);
        row[0] = x;
        rows.set(x, row);
      }
      row[column + 1] = value;
    }
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

/** A figure. Its view is {run, across}, or {groups, across} for the means of arms. */
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
        this.draw(this.view);
      });
    }
    if (kind.unit) caption.append(' ', element('span', {class: 'unit'}, kind.unit));
    this.plot = element('div', {class: 'plot', tabindex: '0', role: 'img', 'aria-label': kind.title});
    this.under = element('p', {class: 'across'});
    this.note = element('p', {class: 'note'});
    this.keys = element('div', {class: 'keys'});
    this.figure = element('figure', {}, caption, this.plot, this.under, this.keys, this.note);
    this.plot.addEventListener('keydown', event => this.key(event));
  }

  get arms() { return this.view.groups !== undefined; }
  get across() { return this.kind.across || this.view.across; }

  /** Names of curves of the view. */
  matching(view) {
    if (view.groups !== undefined)
      return view.groups.filter(group => this.kind.arm && group.runs.some(run => this.has(run, this.kind.arm, view)))
          .map(group => group.name);
    const names = [...view.run.series.keys()].filter(name => this.match.test(name) && this.has(view.run, name, view));
    names.sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
    if (this.kind.first && names.includes(this.kind.first))  // drawn last, above the others
      names.push(...names.splice(names.indexOf(this.kind.first), 1));
    return names;
  }

  has(run, name, view) {
    const curve = run.series.get(name);
    if (curve === undefined || run.failed !== '' && view.groups !== undefined) return false;
    if (!this.kind.across && run.placer(view.across) === null) return false;
    return !this.kind.log || curve.values.some(value => value > 0);
  }

  /** An arm has one colour and stroke in all figures. */
  place(index) {
    return this.arms ? this.view.groups.findIndex(group => group.name === this.names[index]) : index;
  }

  colour(index) {
    return this.names[index] === this.kind.first ? cssColour('--merged') : COLOURS[theme()][this.place(index) % 8];
  }

  stroke(index) {
    if (this.kind.stacked || this.names[index] === this.kind.first) return null;
    const place = this.place(index);  // of 64 arms no two have the same colour and stroke
    return STROKES[(Math.floor(place / 2) + Math.floor(place / 8)) % STROKES.length];
  }

  text(value) {
    if (this.kind.stacked && Number.isFinite(value)) return `${(100 * value).toFixed(value > 0.0995 ? 0 : 1)} %`;
    return (this.kind.text || numberText)(value);
  }

  shown(name) { return this.arms ? name : shortName(name); }

  fillChoice(run) {
    const workers = new Set();
    for (const name of run.series.keys()) {
      const found = this.kind.choice.exec(name);
      if (found) workers.add(Number(found[1]));
    }
    for (const worker of [...workers].sort((a, b) => a - b))
      if (![...this.select.options].some(option => Number(option.value) === worker))
        this.select.add(new Option(String(worker), String(worker)));
  }

  /** @return whether there is anything to draw. */
  draw(view) {
    this.view = view;
    if (this.select && view.run) this.fillChoice(view.run);
    const names = this.matching(view);
    if (names.length === 0) return false;
    this.names = names;
    const rows = this.rows();
    if (rows.length === 0) return false;
    const key = JSON.stringify([this.arms, this.across, this.log, theme(), names, rows.length === 1]);
    const same = this.graph && key === this.drawnKey;
    this.drawnKey = key;
    if (same) {
      this.graph.updateOptions({file: rows});
      this.showValues(null);
      if (this.forward !== null) this.bringForward(this.forward);  // the pointer is still on its name
    } else {
      this.build(rows);
    }
    const text = names.slice(0, 8).map((name, i) => `${this.shown(name)} ${this.text(this.newest[i])}`).join(', ');
    this.plot.setAttribute('aria-label', `${this.kind.title} by ${this.across}, newest: ${text}`);
    this.under.textContent = AXES[this.across] || this.across;
    return true;
  }

  /** What dygraphs draws. Notes the newest values, the places of values that are no numbers, and the marks. */
  rows() {
    const {groups, run} = this.view;
    const curves = this.arms ? this.names.map(name => meanOf(groups.find(group => group.name === name), this.kind.arm, this.across)) :
        this.names.map(name => run.curve(name, this.across));
    const middle = this.arms ? 2 : 1;
    this.newest = curves.map(curve => curve.length > 0 ? curve[curve.length - 1][middle] : undefined);
    this.bad = [...new Set(curves.flatMap(curve => curve.filter(point => Number.isNaN(point[middle])).map(point => point[0])))];
    this.marks = this.marksOf(this.arms ? this.names.map(name => groups.find(group => group.name === name).runs) : [[run]]);
    const scale = this.kind.scale ? this.kind.scale.to : value => value;
    if (!this.arms)
      return joined(curves.map(curve => curve.map(([x, y]) => [x, this.log && y <= 0 ? null : scale(y)])));
    // A band that reaches below 0 ends at a tenth of the mean where the axis is logarithmic.
    const low = (low, mean) => this.log && low <= 0 ? mean / 10 : low;
    return joined(curves.map(curve => curve.map(([x, l, mean, high]) =>
        [x, this.log && mean <= 0 ? null : [scale(low(l, mean)), scale(mean), scale(high)]])));
  }

  /** @param runs  lists of them, one for each colour. */
  marksOf(lists) {
    const marks = [];
    if (!this.kind.marks) return marks;
    lists.forEach((runs, index) => {
      for (const run of runs)
        for (const what of Object.keys(MARKS))
          for (const [x] of run.curve(`mark/${what}`, this.across)) marks.push({x, what, index});
    });
    return marks;
  }

  ticker(scale) {
    return (from, to) => {
      let ticks = scale.ticks.map(value => ({v: scale.to(value), label: `${Number((100 * value).toPrecision(4))} %`}))
          .filter(tick => tick.v >= from && tick.v <= to);
      if (ticks.length < 2)  // a range within two of them
        ticks = [0.15, 0.4, 0.65, 0.9].map(share => from + share * (to - from))
            .map(v => ({v, label: percentText(scale.from(v))}));
      return ticks;
    };
  }

  build(rows) {
    const range = this.graph && !this.single && this.graph.isZoomed() && this.builtAcross === this.across ? this.graph.xAxisRange() : null;
    if (this.graph) this.graph.destroy();
    this.builtAcross = this.across;
    const labels = this.names.map((_, i) => `c${i}`);  // names may be any text
    const series = {};
    this.names.forEach((name, i) => {
      series[labels[i]] = {strokeWidth: name === this.kind.first ? 2.2 : 1.6, strokePattern: this.stroke(i)};
    });
    const {scale} = this.kind;
    const y = {pixelsPerLabel: 28, axisLabelWidth: 58, axisLabelFormatter: value => this.text(value),
               ticker: scale ? this.ticker(scale) : tickerOf(value => this.text(value), {log: this.log})};
    const whole = this.across === 'iterations';
    const across = value => whole && !Number.isInteger(value) ? '' : this.across === 'bytes' ? bytesText(value) : countText(value);
    this.graph = new Dygraph(this.plot, rows, {
      labels: ['x', ...labels],
      colors: this.names.map((_, i) => this.colour(i)),
      series,
      visibility: this.names.map(name => !this.hidden.has(name)),
      connectSeparatedPoints: true,
      customBars: this.arms,
      stackedGraph: Boolean(this.kind.stacked) && !this.arms,
      fillAlpha: this.arms ? 0.16 : 0.55,
      drawPoints: Boolean(this.kind.points),
      pointSize: 2.5,
      drawGapEdgePoints: true,
      includeZero: this.kind.stacked || false,
      valueRange: this.kind.stacked ? [0, 1.001] : null,
      yRangePad: this.kind.stacked ? 0 : 6,
      interactionModel: INTERACTION,
      logscale: this.log,
      gridLineColor: cssColour('--grid'),
      axisLineColor: cssColour('--line'),
      axisLabelFontSize: 12,
      rightGap: 14,
      xRangePad: this.kind.logAcross ? 0 : 5,
      axes: {
        x: {pixelsPerLabel: 56, logscale: Boolean(this.kind.logAcross),
            axisLabelFormatter: across, ticker: tickerOf(across, {log: Boolean(this.kind.logAcross), whole})},
        y,
      },
      highlightCircleSize: 3,
      highlightSeriesOpts: {strokeWidth: 3.5, highlightCircleSize: 4},
      highlightSeriesBackgroundAlpha: 1,  // fading the others would end the next highlight, too
      highlightCallback: (event, x, points, row) => this.showValues(row),
      unhighlightCallback: () => this.showValues(null),
      underlayCallback: (canvas, area, graph) => this.underlay(canvas, area, graph),
    });
    this.single = rows.length === 1;
    const x = rows[0][0], beside = whole ? Math.max(1, Math.round(x / 10)) : Math.abs(x) / 10 || 1;
    if (this.single)  // in the middle, not on the axis
      this.graph.updateOptions({dateWindow: [x - beside, x + beside], drawPoints: true});
    else if (range)
      this.graph.updateOptions({dateWindow: range});
    this.buildKeys();
  }

  /** A cross at the top for each place at which a curve is no number; triangles at the bottom for marks; the target. */
  underlay(canvas, area, graph) {
    const within = x => x >= area.x && x <= area.x + area.w;
    canvas.strokeStyle = cssColour('--ink');
    canvas.lineWidth = 1.5;
    for (const place of this.bad || []) {
      const x = graph.toDomXCoord(place);
      if (!within(x)) continue;
      const y = area.y + 7;
      canvas.beginPath();
      canvas.moveTo(x - 4, y - 4);
      canvas.lineTo(x + 4, y + 4);
      canvas.moveTo(x - 4, y + 4);
      canvas.lineTo(x + 4, y - 4);
      canvas.stroke();
    }
    const shown = new Set();
    for (const {x: place, what, index} of this.marks || []) {
      const x = graph.toDomXCoord(place);
      const name = this.names[index];
      if (!within(x) || this.arms && this.hidden.has(name)) continue;
      shown.add(what);
      const y = area.y + area.h;
      canvas.fillStyle = this.arms ? this.colour(index) : cssColour('--ink');
      canvas.beginPath();
      canvas.moveTo(x, y - 8);
      canvas.lineTo(x - 4, y - 1);
      canvas.lineTo(x + 4, y - 1);
      canvas.fill();
    }
    this.note.textContent = [...shown].map(what => `▲ ${MARKS[what]}.`).join(' ');
    const {target} = this.view;
    if (this.kind.scale && target) {
      const y = graph.toDomYCoord(this.kind.scale.to(target));
      if (y < area.y || y > area.y + area.h) return;
      canvas.setLineDash([2, 4]);
      canvas.beginPath();
      canvas.moveTo(area.x, y);
      canvas.lineTo(area.x + area.w, y);
      canvas.stroke();
      canvas.setLineDash([]);
    }
  }

  buildKeys() {
    this.keys.replaceChildren();
    this.forward = null;
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
                             this.shown(name), value);
      button.addEventListener('click', () => {
        const shown = this.hidden.delete(name);
        if (!shown) this.hidden.add(name);
        button.setAttribute('aria-pressed', String(shown));
        this.graph.setVisibility(i, shown);
      });
      for (const event of ['pointerenter', 'focus']) button.addEventListener(event, () => this.bringForward(i));
      for (const event of ['pointerleave', 'blur'])
        button.addEventListener(event, () => {
          this.forward = null;
          this.graph.clearSelection();
        });
      this.keys.append(button);
    });
    this.showValues(null);
  }

  /** Draws a curve above those that hide it. */
  bringForward(index) {
    this.forward = index;
    if (this.kind.stacked || this.hidden.has(this.names[index])) return;
    for (let row = this.graph.numRows() - 1; row >= 0; --row) {
      const value = this.graph.getValue(row, index + 1);
      if (value === null || Number.isNaN(value)) continue;
      this.graph.setSelection(row, `c${index}`);
      return;
    }
  }

  /** The values of a row, or the newest ones, beside the names. */
  showValues(row) {
    const from = this.kind.scale ? this.kind.scale.from : value => value;
    this.names.forEach((name, i) => {
      let value = row === null ? this.newest[i] : this.graph.getValue(row, i + 1);
      if (row !== null && Array.isArray(value)) value = value[1];
      if (row !== null && value !== null) value = from(value);
      this.values[i].textContent = value === null || value === undefined ? '' : this.text(value);
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
    const whole = event.key === '0' || event.key === 'Escape';
    if (whole) this.graph.resetZoom();
    if (next && next[1] > whole0 && next[0] < whole1) this.graph.updateOptions({dateWindow: next});
    if (next || whole) event.preventDefault();
  }
}
