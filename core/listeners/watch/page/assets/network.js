'use strict';

const SVG = 'http://www.w3.org/2000/svg';

function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The layers of a configuration: {name, type, inputs, settings}. */
function nodesOf(configuration) {
  if (configuration.vertices) {
    const inputs = configuration.inputs.map(
        input => ({name: input.name, type: 'input', inputs: [], settings: {shape: input.shape}}));
    return inputs.concat(configuration.vertices.map(({vertex, inputs: from, type, ...settings}) =>
        ({name: vertex, type, inputs: from, settings})));
  }
  const nodes = [{name: 'input', type: 'input', inputs: [], settings: {shape: configuration.inputShape}}];
  for (const {type, name, ...settings} of configuration.layers || [])
    nodes.push({name: name || `${type} ${nodes.length}`, type, inputs: [nodes[nodes.length - 1].name], settings});
  return nodes;
}

/** Rows by the longest way from an input; within a row in the order of the file. */
function placeNodes(nodes) {
  const byName = new Map(nodes.map(node => [node.name, node]));
  const rowSizes = [];
  for (const node of nodes) {
    node.row = 0;
    for (const from of node.inputs) {
      const source = byName.get(from);
      if (source && source.row !== undefined) node.row = Math.max(node.row, source.row + 1);
    }
    rowSizes[node.row] = (rowSizes[node.row] || 0) + 1;
    node.column = rowSizes[node.row] - 1;
  }
  return {byName, rows: rowSizes.length, columns: Math.max(...rowSizes)};
}

function drawNetwork(configuration) {
  const graph = document.getElementById('graph');
  const nodes = nodesOf(configuration);
  const {byName, rows, columns} = placeNodes(nodes);
  const width = 172, height = 40, gapX = 22, gapY = 20;
  graph.setAttribute('width', columns * (width + gapX) + gapX);
  graph.setAttribute('height', rows * (height + gapY) + gapY);
  graph.replaceChildren();
  const x = node => gapX + node.column * (width + gapX);
  const y = node => gapY + node.row * (height + gapY);
  for (const node of nodes)
    for (const from of node.inputs) {
      const source = byName.get(from);
      if (!source) continue;
      const x1 = x(source) + width / 2, y1 = y(source) + height, x2 = x(node) + width / 2, y2 = y(node);
      // A way past other rows leaves the column, so that it is not hidden by what lies between.
      const aside = node.row > source.row + 1 && x1 === x2 ? width / 2 + gapX * 0.8 : 0;
      const path = aside ?
          `M${x1} ${y1} C${x1 + 2 * aside} ${y1 + gapY},${x2 + 2 * aside} ${y2 - gapY},${x2} ${y2}` :
          `M${x1} ${y1} C${x1} ${y1 + gapY},${x2} ${y2 - gapY},${x2} ${y2}`;
      graph.append(svgElement('path', {d: path}));
    }
  for (const node of nodes) {
    const clip = text => text.length > 24 ? text.slice(0, 23) + '…' : text;
    const box = svgElement('g', {class: 'node', tabindex: 0, role: 'button', 'aria-pressed': 'false',
                                 'aria-label': `${node.name}, ${node.type}`,
                                 transform: `translate(${x(node)} ${y(node)})`},
        svgElement('rect', {width, height, rx: 5}),
        svgElement('text', {x: 8, y: 17}, clip(node.name)),
        svgElement('text', {x: 8, y: 33, class: 'type'}, clip(node.type)));
    const choose = () => {
      for (const other of graph.querySelectorAll('.node')) other.setAttribute('aria-pressed', 'false');
      box.setAttribute('aria-pressed', 'true');
      showSettings(node);
    };
    box.addEventListener('click', choose);
    box.addEventListener('keydown', event => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      choose();
    });
    graph.append(box);
  }
}

function showSettings(node) {
  const body = element('tbody');
  for (const [name, value] of Object.entries(node.settings))
    body.append(element('tr', {}, element('th', {scope: 'row'}, name),
                        element('td', {}, typeof value === 'object' ? JSON.stringify(value) : String(value))));
  document.getElementById('settings').replaceChildren(element('h3', {}, `${node.name} (${node.type})`),
                                                      element('table', {}, body));
}

/** Bars of a histogram with its ends and the largest count. */
function drawHistogram(id, histogram) {
  const svg = document.getElementById(id);
  const width = 400, height = 160, bottom = 22, top = 14;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const most = Math.max(1, ...histogram.bins);
  const step = width / histogram.bins.length;
  histogram.bins.forEach((count, i) => {
    const size = (height - bottom - top) * count / most;
    svg.append(svgElement('rect', {class: 'bar', x: i * step + 0.5, y: height - bottom - size, width: step - 1, height: size}));
  });
  svg.append(svgElement('line', {class: 'axis', x1: 0, x2: width, y1: height - bottom, y2: height - bottom}));
  const label = (x, y, anchor, text) => svg.append(svgElement('text', {x, y, 'text-anchor': anchor}, text));
  label(2, height - 6, 'start', numberText(histogram.min));
  label(width - 2, height - 6, 'end', numberText(histogram.max));
  label(2, 11, 'start', `at most ${most} of ${histogram.count}`);
}
