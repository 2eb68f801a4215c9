'use strict';

/** What the server has sent: curves by name, and the newest of everything else. */
class Store {
  constructor() {
    this.series = new Map();  // name -> {steps, values}; a value that is no number is null
    this.progress = null;
    this.histograms = null;
    this.network = null;
    this.texts = {};
    this.changed = new Set();  // names of parts, "series" among them
  }

  add(news) {
    if (news.all) {
      this.series.clear();
      this.changed.add('series');
    }
    for (const {name, points} of news.series) {
      if (!this.series.has(name)) this.series.set(name, {steps: [], values: []});
      const curve = this.series.get(name);
      for (const [step, value] of points) {
        curve.steps.push(step);
        curve.values.push(value);
      }
      this.changed.add('series');
    }
    for (const part of ['progress', 'histograms', 'network', 'texts'])
      if (news[part] !== undefined) {
        this[part] = news[part];
        this.changed.add(part);
      }
  }

  /** Rows [step, value of each name] over all their steps. null: nothing at this step; NaN: no number. */
  rows(names) {
    const rows = new Map();
    names.forEach((name, column) => {
      const {steps, values} = this.series.get(name);
      for (let i = 0; i < steps.length; ++i) {
        let row = rows.get(steps[i]);
        if (row === undefined) {
          row = new Array(names.length + 1).fill(null);
          row[0] = steps[i];
          rows.set(steps[i], row);
        }
        row[column + 1] = values[i] === null ? NaN : values[i];
      }
    });
    return [...rows.values()].sort((a, b) => a[0] - b[0]);
  }

  last(name) {
    const {values} = this.series.get(name);
    return values[values.length - 1];
  }
}

/** A number in few digits. */
function numberText(value) {
  if (value === null || Number.isNaN(value)) return 'no number';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

function bytesText(value) {
  if (value === null || Number.isNaN(value)) return 'no number';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}
