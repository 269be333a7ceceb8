#pragma once
#include <string_view>

#include "core/report/review_page.h"

namespace sheaf {

/// The script of the page on which two runs are compared.
inline constexpr std::string_view kOwnPairScript = R"js(
const keyOf = item => JSON.stringify([data.records[item.record].id, item.question]);
const items = data.items.map(item => ({...item, key: keyOf(item)}));
const known = new Set(items.map(item => item.key));
const place = 'sheaf-pair:' + data.key + ':' + data.seed;

// What was judged, the last verdict last: {key, verdict}.
let log = [], others = [], current = 0, kept = true;

function load() {
  try {
    const saved = JSON.parse(localStorage.getItem(place) || '[]');
    log = saved.filter(entry => known.has(entry.key));
    others = saved.filter(entry => !known.has(entry.key));
  } catch (error) {
    kept = false;
  }
}

function save() {
  try {
    localStorage.setItem(place, JSON.stringify(others.concat(log)));
  } catch (error) {
    kept = false;
  }
}

const verdicts = () => new Map(log.map(entry => [entry.key, entry.verdict]));

function addCell(row, side) {
  const cell = document.createElement('td');
  if (side === null) {
    cell.textContent = 'not asked';
    cell.className = 'null';
  } else {
    addText(cell, shownValue(side.value) + (side.option ? `) ${side.option}` : ''));
    if (side.value === 'null') cell.className = 'null';
  }
  row.append(cell);
}

function showValues(item) {
  const body = at('values');
  body.textContent = '';
  for (const {name, left, right} of item.values) {
    const row = document.createElement('tr'), title = document.createElement('th');
    addText(title, name);
    row.append(title);
    addCell(row, left);
    addCell(row, right);
    if (JSON.stringify(left) === JSON.stringify(right)) row.className = 'same';
    body.append(row);
  }
}

function showDocument(item) {
  const pane = at('document');
  pane.textContent = '';
  for (const [name, text] of data.records[item.record].columns) {
    const title = document.createElement('h3'), body = document.createElement('div');
    addText(title, name);
    addText(body, text);
    pane.append(title, body);
  }
  pane.scrollTop = 0;
}

const words = {left: 'left is better', right: 'right is better', both: 'both are right', neither: 'neither is right'};

function show() {
  const item = items[current], record = data.records[item.record], judged = verdicts();
  at('progress').textContent = `${judged.size} of ${items.length}`;
  at('bar').max = items.length;
  at('bar').value = judged.size;
  setText('where', [`${current + 1} of ${items.length}`, record.category, shownValue(record.id)].filter(Boolean).join(' · '));
  showValues(item);
  at('verdict').textContent = words[judged.get(item.key)] || '';
  at('undo').disabled = at('download').disabled = log.length === 0;
  at('back').disabled = current === 0;
  at('next').disabled = current === items.length - 1;
  at('storage').hidden = kept;
  at('done').hidden = judged.size < items.length;
  showDocument(item);
}

function move(by) {
  current = Math.min(Math.max(current + by, 0), items.length - 1);
  show();
}

function judge(verdict) {
  log.push({key: items[current].key, verdict});
  save();
  const judged = verdicts();
  for (let i = 1; i <= items.length; ++i) {
    const next = (current + i) % items.length;
    if (judged.has(items[next].key)) continue;
    current = next;
    break;
  }
  show();
}

function undo() {
  if (log.length === 0) return;
  const last = log.pop();
  save();
  current = items.findIndex(item => item.key === last.key);
  show();
}

function verdictLines() {
  const judged = verdicts();
  return items.filter(item => judged.has(item.key)).map(item =>
    `{"pair": ${JSON.stringify(data.key)}, "seed": ${data.seed}, "id": ${data.records[item.record].id}, ` +
    (item.question < 0 ? '' : `"question": ${item.question}, `) + `"verdict": ${JSON.stringify(judged.get(item.key))}}\n`).join('')
    .replace(/[\u0085\u2028\u2029]/g, end => '\\u' + end.charCodeAt(0).toString(16).padStart(4, '0'));
}

const actions = {l: () => judge('left'), r: () => judge('right'), b: () => judge('both'), n: () => judge('neither'), u: undo,
                 ArrowLeft: () => move(-1), ArrowRight: () => move(1)};

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

for (const [id, key] of [['left', 'l'], ['right', 'r'], ['both', 'b'], ['neither', 'n'], ['undo', 'u'], ['back', 'ArrowLeft'], ['next', 'ArrowRight']])
  at(id).addEventListener('click', actions[key]);
at('download').addEventListener('click', () => download('verdicts.jsonl', verdictLines()));

load();
current = Math.max(items.findIndex(item => !verdicts().has(item.key)), 0);
show();
)js";

inline constexpr std::string_view kPairScript = kJoined<kPageScript, kOwnPairScript>;

inline constexpr std::string_view kOwnPairStyle = R"css(
table { border-collapse: collapse; width: 100%; table-layout: fixed; } .scroll { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--rule);
  overflow-wrap: anywhere; unicode-bidi: isolate; white-space: pre-wrap; }
th { font-weight: 500; color: var(--soft); font-size: .88rem; } td { font-weight: 600; }
td.null { color: var(--soft); font-style: italic; font-weight: 400; } tr.same td { color: var(--soft); font-weight: 400; }
)css";

inline constexpr std::string_view kPairStyle = kJoined<kReviewStyle, kOwnPairStyle>;

}  // namespace sheaf
