#pragma once
#include <string_view>

#include "core/report/page_script.h"
#include "core/report/review_nested.h"

namespace sheaf {

/// The script of the page for the person who checks values. It shows texts by textContent only.
inline constexpr std::string_view kOwnReviewScript = R"js(
const keyOf = item => item.question ? JSON.stringify([item.question]) : JSON.stringify([data.records[item.record].id, item.attribute]);
const items = data.items.map(item => ({...item, key: keyOf(item)}));
const byKey = new Map(items.map(item => [item.key, item]));
const place = 'sheaf-review:' + data.key;

// What was judged, the last verdict last: {key, value, verdict, gold}. `value` and `gold` are JSON as it is
// written, because a script's numbers would lose digits.
let log = [], others = [], current = 0, editing = false, kept = true;

function load() {
  try {
    const saved = JSON.parse(localStorage.getItem(place) || '[]');
    // A verdict about another value than the one shown is none about this one.
    log = saved.filter(entry => byKey.has(entry.key) && byKey.get(entry.key).value === entry.value);
    others = saved.filter(entry => !byKey.has(entry.key));
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

const verdicts = () => new Map(log.map(entry => [entry.key, entry]));

function showDocument(item) {
  const pane = at('document');
  pane.textContent = '';
  data.records[item.record].columns.forEach(([name, text], c) => {
    const title = document.createElement('h3'), body = document.createElement('div');
    addText(title, name);
    const points = Array.from(text);  // offsets count code points
    let done = 0;
    for (const mark of item.marks.filter(m => m.column === c).sort((a, b) => a.start - b.start)) {
      const start = Math.max(mark.start, done), end = Math.min(mark.end, points.length);
      if (start >= end) continue;
      addText(body, points.slice(done, start).join(''));
      const shown = document.createElement('mark');
      addText(shown, points.slice(start, end).join(''));
      body.append(shown);
      done = end;
    }
    addText(body, points.slice(done).join(''));
    pane.append(title, body);
  });
  const first = pane.querySelector('mark');
  pane.scrollTop = first ? first.offsetTop - pane.clientHeight / 2 : 0;
}

// Wilson's interval of 95 %.
function interval(right, all) {
  const z = 1.96, p = right / all, middle = p + z * z / (2 * all);
  const half = z * Math.sqrt(p * (1 - p) / all + z * z / (4 * all * all)), whole = 1 + z * z / all;
  return [(middle - half) / whole, (middle + half) / whole];
}

function tally() {
  let right = 0, all = 0, rightNull = 0, allNull = 0;
  for (const entry of verdicts().values()) {
    const good = entry.verdict === 'right' ? 1 : 0;
    if (byKey.get(entry.key).empty) {
      ++allNull;
      rightNull += good;
    } else {
      ++all;
      right += good;
    }
  }
  const percent = share => Math.round(100 * share);
  let text = '';
  if (all > 0) {
    const [low, high] = interval(right, all);
    text = `precision ${percent(right / all)} % (${percent(low)} to ${percent(high)} %) of ${all} value${all === 1 ? '' : 's'}`;
  }
  if (allNull > 0) text += `${text ? '; ' : ''}null right ${rightNull} of ${allNull}`;
  return text;
}

function show() {
  const item = items[current], record = data.records[item.record], judged = verdicts(), entry = judged.get(item.key);
  at('progress').textContent = `${judged.size} of ${items.length}`;
  at('bar').max = items.length;
  at('bar').value = judged.size;
  at('tally').textContent = tally();
  setText('where', [`value ${current + 1} of ${items.length}`, record.category, shownValue(record.id)].filter(Boolean).join(' · '));
  setText('attribute', item.attribute);
  const about = [item.description, item.unit && `in ${item.unit}`, item.choices && item.choices.length > 0 ? item.choices.map((text, i) => `${item.options[i]}) ${text}`).join(' · ')
    : item.options.length > 0 && `one of: ${item.options.join(', ')}`];
  setText('about', about.filter(Boolean).join(' · '));
  setText('value', item.spread || shownValue(item.value));
  at('value').className = item.value === 'null' ? 'null' : item.spread ? 'spread' : '';
  const facts = [item.sure !== null && `${item.sureIs} ${item.sure.toFixed(3)}`, item.note];
  for (const text of item.absent) facts.push(`“${text}” does not stand in the document`);
  setText('facts', facts.filter(Boolean).join(' · '));
  setText('verdict', !entry ? '' : entry.verdict === 'edited' ? `wrong; the right value is ${shownValue(entry.gold)}` : entry.verdict);
  at('verdict').className = entry ? entry.verdict : '';
  at('editor').hidden = true;
  editing = false;
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

function judge(verdict, gold) {
  const item = items[current];
  log.push({key: item.key, value: item.value, verdict, gold});
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

function makeField(item, value) {
  const chosen = item.type === 'enum' || item.type === 'boolean';
  const field = document.createElement(chosen ? 'select' : item.type === 'list' || item.fields ? 'textarea' : 'input');
  field.id = 'field';
  field.setAttribute('aria-labelledby', 'hint');
  if (chosen) {
    for (const option of ['', ...item.options]) {
      const choice = document.createElement('option');
      choice.value = option;
      choice.textContent = option || 'null';
      field.append(choice);
    }
  } else if (item.type === 'date') {
    field.type = 'date';
    field.min = '1000-01-01';
    field.max = '9999-12-31';
  } else {
    field.dir = 'auto';
    field.autocomplete = 'off';
  }
  field.value = value === null ? '' : item.fields ? item.spread : Array.isArray(value) ? value.join('\n') : typeof value === 'string' ? value : item.value;
  return field;
}

function edit() {
  const item = items[current], field = makeField(item, JSON.parse(item.value));
  at('slot').replaceChildren(field);
  const nestedHint = 'JSON as the value above; nothing means null. Ctrl+Enter saves.';
  const hints = {object: nestedHint, entries: nestedHint, enum: 'Choose the right value.', boolean: 'Choose the right value.', date: 'A date; nothing means null.', list: 'One entry per line; nothing means null. Ctrl+Enter saves.',
                 number: `A number${item.unit ? ` in ${item.unit}` : ''}; nothing means null.`};
  at('hint').textContent = hints[item.type] || 'The right value as the document has it; nothing means null.';
  at('error').textContent = '';
  at('editor').hidden = false;
  editing = true;
  field.focus();
  if (field.select) field.select();
}

// The JSON of what was typed; nothing where it is no value of the attribute.
function typedValue(item, field) {
  const text = field.value;
  if (field.validity && field.validity.badInput) return undefined;
  if (text.trim() === '') return 'null';
  if (item.type === 'boolean') return text;
  if (item.fields) return misfit(item, text) ? undefined : text.trim().replace(/\s*\n\s*/g, ' ');
  if (item.type === 'date') return /^[1-9]\d{3}-\d{2}-\d{2}$/.test(text) ? JSON.stringify(text) : undefined;
  if (item.type === 'enum') return JSON.stringify(text);
  if (item.type === 'list') return JSON.stringify(text.split('\n').map(line => line.trim()).filter(Boolean));
  if (item.type !== 'number') return JSON.stringify(text.trim());
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim()) && isFinite(Number(text)) ? text.trim() : undefined;
}

function saveEdit() {
  const item = items[current], gold = typedValue(item, at('field'));
  if (gold === undefined) {
    at('error').textContent = item.fields ? misfit(item, at('field').value) : item.type === 'date' ? 'This is not a date. Give its day, month and year.'
                                                   : 'This is not a number. Type one such as 12.5, without its unit.';
    return;
  }
  at('editor').hidden = true;
  const same = item.fields ? JSON.stringify(JSON.parse(gold)) === JSON.stringify(JSON.parse(item.value)) : gold === item.value;
  same ? judge('right') : judge('edited', gold);
}

// A line for each question, with its context.
function questionLine(item, entry) {
  const text = data.records[item.record].columns.map(column => column[1]).join('\n');
  const gold = entry.verdict === 'edited' ? entry.gold : item.value, list = gold === 'null' ? '[]' : `[${gold}]`;
  return `{"id": ${item.question}, "context": ${JSON.stringify(text)}, "question": ${JSON.stringify(item.attribute)}, ` +
    (item.choices.length > 0 ? `"options": ${JSON.stringify(item.choices)}, ` : '') +
    (entry.verdict === 'wrong' ? `"wrong": [${item.value}]}\n` : `"answers": ${list}}\n`);
}

function goldLines() {
  const byRecord = new Map(), judged = verdicts();
  let lines = '';
  for (const item of items) {
    const entry = judged.get(item.key);
    if (!entry) continue;
    if (item.question) {
      lines += questionLine(item, entry);
      continue;
    }
    if (!byRecord.has(item.record)) byRecord.set(item.record, {gold: [], wrong: []});
    const lists = byRecord.get(item.record), name = JSON.stringify(item.attribute);
    if (entry.verdict === 'wrong') lists.wrong.push(`${name}: [${item.value}]`);
    else lists.gold.push(`${name}: ${entry.verdict === 'edited' ? entry.gold : item.value}`);
  }
  for (const [index, {gold, wrong}] of byRecord) {
    const record = data.records[index], text = record.columns.map(column => column[1]).join('\n');
    lines += `{"id": ${record.id}, "category": ${JSON.stringify(record.category)}, "document": ${JSON.stringify(text)}, ` +
      `"gold": {${gold.join(', ')}}${wrong.length > 0 ? `, "wrong": {${wrong.join(', ')}}` : ''}}\n`;
  }
  // Some readers of lines take these for the end of one.
  return lines.replace(/[\u0085\u2028\u2029]/g, end => '\\u' + end.charCodeAt(0).toString(16).padStart(4, '0'));
}

const actions = {y: () => judge('right'), n: () => judge('wrong'), e: edit, u: undo,
                 ArrowLeft: () => move(-1), ArrowRight: () => move(1)};

document.addEventListener('keydown', event => {
  if (editing) {
    const inList = event.target.tagName === 'TEXTAREA' && !event.ctrlKey && !event.metaKey;
    if (event.key === 'Escape') show();
    else if (event.key === 'Enter' && event.target.id === 'field' && !inList && !event.isComposing) saveEdit();
    else return;
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

at('right').addEventListener('click', actions.y);
at('wrong').addEventListener('click', actions.n);
at('edit').addEventListener('click', edit);
at('undo').addEventListener('click', undo);
at('back').addEventListener('click', actions.ArrowLeft);
at('next').addEventListener('click', actions.ArrowRight);
at('save').addEventListener('click', saveEdit);
at('cancel').addEventListener('click', show);
at('download').addEventListener('click', () => download('gold.jsonl', goldLines()));

load();
current = Math.max(items.findIndex(item => !verdicts().has(item.key)), 0);
setText('run', data.run);
at('bias').hidden = !data.leastSure;
show();
)js";

inline constexpr std::string_view kReviewScript = kJoined<kPageScript, kNestedScript, kOwnReviewScript>;

/// The style of the page for the person who checks values: light or dark as the reader's machine has it.
inline constexpr std::string_view kReviewStyle = R"css(
:root { color-scheme: light dark; --ground: #f6f6f3; --card: #fff; --text: #1c1d1f; --soft: #5d6166; --rule: #dddfdc;
  --mark: #ffe28a; --good: #2f7d4a; --bad: #b03a3a; --focus: #2f6f9f; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15171a; --card: #1e2125; --text: #e8e8e6; --soft: #a0a5ab; --rule: #3a3f45; --mark: #7a5c00;
    --good: #74bf89; --bad: #e98080; --focus: #64a9dc; } }
* { box-sizing: border-box; } [hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.45 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.35rem; margin: .2rem 0; overflow-wrap: anywhere; }
p { margin: .3rem 0; } .soft { color: var(--soft); font-size: .88rem; overflow-wrap: anywhere; }
header { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; align-items: baseline; justify-content: space-between; }
progress { width: 100%; height: .5rem; accent-color: var(--focus); }
section { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; padding: .9rem 1rem; margin: .7rem 0; }
#value { font-size: 1.25rem; font-weight: 600; margin: .5rem 0; overflow-wrap: anywhere; unicode-bidi: isolate; white-space: pre-wrap; }
#value.spread { font: .95rem/1.5 ui-monospace, monospace; } #editor textarea { font-family: ui-monospace, monospace; }
#value.null { color: var(--soft); font-style: italic; font-weight: 400; }
#editor { margin-bottom: .8rem; } #verdict.right { color: var(--good); } #verdict.wrong, #verdict.edited, #error { color: var(--bad); }
#document { position: relative; max-height: 45vh; overflow: auto; border-top: 1px solid var(--rule); padding-top: .3rem; }
#document h3 { font-size: .8rem; color: var(--soft); font-weight: 500; margin: .5rem 0 0; }
#document div { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
mark { background: var(--mark); color: inherit; border-radius: 2px; padding: 0 .1em; }
.code { font-size: .7em; border: 1px solid var(--bad); color: var(--bad); border-radius: 2px; margin: 0 .1em; padding: 0 .15em; }
button, input, select, textarea { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--rule);
  border-radius: .35rem; padding: .35rem .7rem; }
button:disabled { opacity: .45; } :focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
input, select, textarea { width: 100%; margin: .3rem 0; } textarea { min-height: 6rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; } kbd { font: .8em ui-monospace, monospace; color: var(--soft); }
)css";

}  // namespace sheaf
