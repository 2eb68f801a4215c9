'use strict';

/** A table that scrolls where it is too wide, and then says so. @param rows  lists of texts or elements, the head first. */
function tableOf(rows, label) {
  const [head, ...body] = rows;
  const cells = (row, tag) => row.map(cell => element(tag, {}, ...(cell === null ? [] : [cell])));
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...cells(head, 'th'))),
                        element('tbody', {}, ...body.map(row => element('tr', {}, ...cells(row, 'td')))));
  const box = element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label}, table);
  const hint = element('p', {class: 'hint', hidden: ''}, 'More columns to the right: scroll, or use the arrow keys. →');
  const measure = () => { hint.hidden = box.scrollWidth - box.clientWidth - box.scrollLeft < 4; };
  new ResizeObserver(() => requestAnimationFrame(measure)).observe(box);
  box.addEventListener('scroll', measure);
  return element('div', {class: 'table'}, box, hint);
}

function notesOf(sentences) {
  return element('ul', {class: 'notes'}, ...(sentences || []).map(sentence => element('li', {}, sentence)));
}

/** How many examples of each class were taken for which: right ones in one colour, mistakes in another. */
function confusionOf({classes, rows}) {
  const most = Math.max(1, ...rows.flatMap((row, i) => row.counts.filter((_, j) => i !== j)));
  const cells = rows.map(({counts}, i) => {
    const all = Math.max(1, counts.reduce((sum, n) => sum + n, 0));
    return [classes[i], ...counts.map((n, j) => {
      const strength = i === j ? 0.15 + 0.5 * n / all : n === 0 ? 0 : 0.1 + 0.5 * Math.sqrt(n / most);
      const cell = element('span', {class: i === j ? 'right' : 'wrong'}, n === 0 && i !== j ? '' : String(n));
      cell.style.setProperty('--strength', strength.toFixed(3));
      return cell;
    })];
  });
  const made = tableOf([['true class', ...classes], ...cells], 'confusion matrix');
  made.classList.add('confusion');
  return made;
}

/** Small pictures, a byte a pixel in hexadecimal, with a line below each. */
function picturesOf({width, height, list}) {
  return element('div', {class: 'pictures'}, ...list.map(({pixels, caption}) => {
    const canvas = element('canvas', {width, height, role: 'img', 'aria-label': caption});
    const context = canvas.getContext('2d');
    const image = context.createImageData(width, height);
    for (let i = 0; i < width * height; ++i) {
      const grey = 255 - parseInt(pixels.slice(2 * i, 2 * i + 2), 16);
      image.data.set([grey, grey, grey, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
    return element('figure', {}, canvas, element('figcaption', {}, caption));
  }));
}

/** The parts of a report: those that come before the curves, and those after them. */
function showDocument(given) {
  const before = [], after = [];
  for (const sentence of given.paragraphs || []) before.push(element('p', {}, sentence));
  for (const sentence of given.warnings || []) before.push(element('p', {class: 'warning'}, sentence));
  (given.tables || []).forEach((table, i) => {
    const to = i === 0 ? before : after;
    if (table.title) to.push(element('h2', {}, table.title));
    to.push(tableOf(table.rows.map(row => row.cells), table.title || 'results'), notesOf(table.notes));
  });
  if (given.confusion) after.push(element('h2', {}, 'Classes'), confusionOf(given.confusion));
  if (given.pictures) after.push(element('h2', {}, given.pictures.title), picturesOf(given.pictures));
  if (given.notes) after.push(element('h2', {}, 'How to read it'), notesOf(given.notes));
  if (given.options)
    after.push(element('h2', {}, 'Options'), element('p', {class: 'options'}, ...given.options.flatMap(option => [element('code', {}, option), ' '])));
  document.getElementById('before').replaceChildren(...before);
  document.getElementById('after').replaceChildren(...after);
}

/** Runs of each arm with what they came to, where no report has a table of its own. */
function armsTable(groups) {
  const spread = (values, text) => {
    const good = values.filter(Number.isFinite);
    if (good.length === 0) return '-';
    const mean = good.reduce((sum, x) => sum + x, 0) / good.length;
    if (good.length === 1) return text(mean);
    return `${text(mean)} ± ${text(Math.sqrt(good.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (good.length - 1)))}`;
  };
  const data = groups.some(({runs}) => runs.some(run => run.last('test/loss') !== undefined)) ? 'test' : 'validation';
  const rows = groups.map(({name, runs}) => {
    const good = runs.filter(run => run.failed === '');
    const last = curve => good.map(run => run.last(curve));
    const running = good.filter(run => run.running).length;
    const failed = runs.length - good.length;
    const count = [`${runs.length}`, ...(running > 0 ? [`${running} running`] : []), ...(failed > 0 ? [`${failed} failed`] : [])];
    return [name, count.join(', '), spread(last(`${data}/accuracy`), percentText), spread(last(`${data}/loss`), numberText),
            spread(good.map(run => run.score), numberText), spread(last('training/samples per second'), numberText)];
  });
  return tableOf([['arm', 'runs', `${data} accuracy`, `${data} loss`, 'score', 'samples/s'], ...rows], 'arms');
}
