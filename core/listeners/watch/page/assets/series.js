'use strict';

/** One training: its curves by name, and the newest of everything else. */
class Run {
  constructor(name) {
    this.name = name;
    this.group = name;  // runs of one group are drawn as their mean
    this.failed = '';
    this.series = new Map();  // name -> {steps, values}; a value that is no number is null
    this.progress = null;
    this.histograms = null;
    this.network = null;
    this.texts = {};
  }

  last(name) {
    const curve = this.series.get(name);
    return curve === undefined ? undefined : curve.values[curve.values.length - 1];
  }

  /** The newest score: that of a finished epoch, or of all workers since their last reading; undefined if there is none. */
  get score() {
    const curves = ['score/epoch', 'score/merged'].map(name => this.series.get(name)).filter(curve => curve !== undefined);
    const last = curve => curve.steps[curve.steps.length - 1];
    return curves.length === 0 ? undefined : curves.reduce((a, b) => last(b) > last(a) ? b : a).values.slice(-1)[0];
  }

  get running() { return this.progress !== null && this.progress.running; }

  /** Where iterations lie on an axis ("samples", "seconds", ...), between the places that are known; null if none is. */
  placer(across) {
    if (across === 'iterations' || across === 'workers') return step => step;
    const known = this.series.get(`at/${across}`);
    if (known === undefined) return null;
    const {steps, values} = known;
    return step => {
      let begin = 0, end = steps.length;  // the first place at `step` or after it
      while (begin < end) {
        const middle = (begin + end) >> 1;
        if (steps[middle] < step) begin = middle + 1;
        else end = middle;
      }
      // Before the first place: from 0. After the last: as between the last two.
      const after = Math.min(begin, steps.length - 1);
      const [fromStep, fromValue] = after > 0 ? [steps[after - 1], values[after - 1]] : [0, 0];
      const width = steps[after] - fromStep;
      return width > 0 ? fromValue + (values[after] - fromValue) * (step - fromStep) / width : values[after];
    };
  }

  /** A curve as [place, value], NaN where it is no number; [] where the axis is not known. */
  curve(name, across) {
    const place = this.placer(across);
    const curve = this.series.get(name);
    if (place === null || curve === undefined) return [];
    return curve.steps.map((step, i) => [place(step), curve.values[i] === null ? NaN : curve.values[i]]);
  }
}

/** What has been sent: runs by name, and the words about all of them. */
class Store {
  constructor() {
    this.runs = new Map();
    this.document = null;      // title, paragraphs, tables, ... of a report
    this.changed = new Set();  // names of parts, "series" among them
  }

  run(name) {
    if (!this.runs.has(name)) {
      this.runs.set(name, new Run(name));
      this.changed.add('runs');
    }
    return this.runs.get(name);
  }

  /** @param news  of a run, or the document. */
  add(news) {
    if (news.document !== undefined) {
      this.document = news.document;
      this.changed.add('document');
      return;
    }
    if (news.news !== undefined) {  // a line of a run's file, which is not ours
      try {
        this.add({...news.news, document: undefined, news: undefined, run: news.run, group: news.group});
      } catch {
        this.run(news.run).failed = 'its file does not hold curves';
      }
      return;
    }
    const run = this.run(String(news.run === undefined ? '' : news.run));
    if (news.all) {
      news = {failed: '', ...news};
      run.series.clear();
      this.changed.add('series');
    }
    for (const key of ['group', 'failed'])
      if (news[key] !== undefined && run[key] !== news[key]) {
        run[key] = String(news[key]);
        this.changed.add('runs');
      }
    for (const {name, points} of news.series || []) {
      if (!run.series.has(name)) run.series.set(name, {steps: [], values: []});
      const curve = run.series.get(name);
      for (const [step, value] of points) {
        curve.steps.push(step);
        curve.values.push(value);
      }
      this.changed.add('series');
    }
    for (const part of ['progress', 'histograms', 'network', 'texts'])
      if (news[part] !== undefined) {
        run[part] = news[part];
        this.changed.add(part);
      }
  }

  /** Arms in the order in which they came: {name, runs}. @param names  those that are wanted; null: all. */
  groups(names) {
    const groups = new Map();
    for (const run of this.runs.values()) {
      if (!groups.has(run.group)) groups.set(run.group, {name: run.group, runs: []});
      groups.get(run.group).runs.push(run);
    }
    const wanted = names === null ? [...groups.keys()] : names.filter(name => groups.has(name));
    return wanted.map(name => groups.get(name));
  }

  /** The axes that some run has. */
  axes() {
    const axes = new Set(['iterations']);
    for (const run of this.runs.values())
      for (const name of run.series.keys()) if (name.startsWith('at/')) axes.add(name.slice(3));
    return [...axes];
  }
}

/** Values at increasing places, in between on straight lines: calls go from left to right. */
function reader(curve) {
  let i = 0;
  return x => {
    while (i + 1 < curve.length && curve[i + 1][0] <= x) ++i;
    const [x0, y0] = curve[i];
    if (x0 === x || i + 1 === curve.length) return y0;
    const [x1, y1] = curve[i + 1];
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
  };
}

const MOST_PLACES = 600;  // of a mean

/** The mean of an arm's runs and one standard deviation (n - 1) up and down: [place, low, mean, high]. It goes as far as
 *  all of them have come. Runs that failed are left out, and so are those that have not ended where others have. */
function meanOf(group, name, across) {
  const good = group.runs.filter(run => run.failed === '' && run.series.has(name));
  const ended = good.filter(run => !run.running);
  const curves = (ended.length > 0 ? ended : good).map(run => run.curve(name, across)).filter(c => c.length > 0);
  if (curves.length === 0) return [];
  for (const curve of curves) curve.sort((a, b) => a[0] - b[0]);
  if (curves.length === 1) return curves[0].map(([x, y]) => [x, y, y, y]);
  const from = Math.max(...curves.map(curve => curve[0][0]));
  const to = Math.min(...curves.map(curve => curve[curve.length - 1][0]));
  const all = new Set();
  for (const curve of curves) for (const [x] of curve) if (x >= from && x <= to) all.add(x);
  let places = [...all].sort((a, b) => a - b);
  const every = Math.ceil(places.length / MOST_PLACES);
  places = places.filter((_, i) => i % every === 0 || i === places.length - 1);
  const at = curves.map(reader);
  return places.map(x => {
    const values = at.map(read => read(x));
    const mean = values.reduce((sum, y) => sum + y, 0) / values.length;
    const spread = Math.sqrt(values.reduce((sum, y) => sum + (y - mean) ** 2, 0) / (values.length - 1));
    return [x, mean - spread, mean, mean + spread];
  });
}

/** A number in few digits. */
function numberText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return 'no number';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

function bytesText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return 'no number';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

/** As on an axis: 1500000 is 1.5M. */
function countText(value) {
  for (const [size, sign] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(4))}${sign}`;
  return String(Number(value.toPrecision(4)));
}

const percentText = (value, digits = 2) => `${(100 * value).toFixed(digits)} %`;
