// Reference scorer of AdditiveBayesClassifier.to_dict(): node score.js MODEL.json ROWS.json writes probabilities to stdout.
// ROWS is a list of lists, a value per column of the model; null is missing.
"use strict";
const fs = require("fs");

function bin(column, value) {
  if (value === null || value === undefined) return -1;
  if (column.kind === "states") return column.states.indexOf(value);
  let n = 0;
  while (n < column.edges.length && column.edges[n] <= value) n++;
  return n;
}

function add(scores, line, factor = 1) {
  line.forEach((x, c) => { scores[c] += factor * x; });
}

function normalScore(knots, value) {
  let last = 0;
  for (let k = 0; k < knots.values.length && knots.values[k] <= value; k++) last = k;
  return knots.scores[last];
}

function density(scores, content, row) {
  const numbers = content.columns.map(j => row[j]);
  if (numbers.some(x => x === null)) return;
  const z = numbers.map((x, k) => normalScore(content.knots[k], x));
  for (const part of content.parts) {
    const v = z.map((x, k) => x - content.means[part.class][k]);
    let form = 0, alone = 0;
    for (const line of part.inverse) form += line.reduce((sum, a, k) => sum + a * v[k], 0) ** 2;
    v.forEach((x, k) => { alone += Math.log1p((part.widths[k] * x) ** 2); });
    scores[part.class] += part.weight * (part.constant - part.joint_power * Math.log1p(form) + part.single_power * alone);
  }
}

function forestBin(forest, bins, row, j) {
  const edges = forest.edges[j], value = row[j];
  if (edges === undefined) return bins[j] + 1;
  return value === null ? 0 : 1 + edges.filter(edge => edge <= value).length;
}

function forest(scores, content, bins, row) {
  const found = row.map((_, j) => forestBin(content, bins, row, j));
  const sums = content.shares.map(share => content.mixed * share);
  for (const root of content.roots) {
    let node = root;
    while (content.children[node] >= 0) {
      const b = found[content.columns[node]], half = b < 31 ? 0 : 1;
      node = content.children[node] + 1 - ((content.masks[half][node] >> (b - 31 * half)) & 1);
    }
    add(sums, content.leaves[-1 - content.children[node]], 1 / content.roots.length);
  }
  add(scores, sums.map(p => Math.log(p / (1 + content.mixed))), content.weight);
}

function score(model, row) {
  const bins = model.columns.map((column, j) => bin(column, row[j]));
  const scores = model.prior.slice();
  for (const table of model.tables) {
    if (bins[table.column] >= 0) add(scores, table.evidence[bins[table.column]]);
  }
  for (const pair of model.pairs) {
    const [first, second] = pair.columns.map(j => bins[j]);
    if (first >= 0 && second >= 0) add(scores, pair.evidence[first][second]);
  }
  for (const slope of model.slopes) {
    if (row[slope.column] === null) continue;
    const x = (row[slope.column] - slope.mean) / slope.spread;
    add(scores, slope.weights, Math.max(-model.clip, Math.min(model.clip, x)));
  }
  for (const content of model.densities) density(scores, content, row);
  if (model.forest) forest(scores, model.forest, bins, row);
  for (const tree of model.trees) {
    add(scores, tree.leaves[tree.columns.reduce((leaf, j, k) => 2 * leaf + (bins[j] > tree.last_bins[k] ? 1 : 0), 0)]);
  }
  return scores;
}

function softmax(scores) {
  const top = Math.max(...scores), odds = scores.map(x => Math.exp(x - top));
  const total = odds.reduce((a, b) => a + b, 0);
  return odds.map(x => x / total);
}

const [model, rows] = process.argv.slice(2).map(path => JSON.parse(fs.readFileSync(path, "utf8")));
process.stdout.write(JSON.stringify(rows.map(row => softmax(score(model, row)))));
