#pragma once
#include <string_view>

namespace sheaf {

/// The style of report.html: one column on a phone, two beside each other where there is room, light or dark
/// as the reader's machine has it, always light on paper.
inline constexpr std::string_view kReportStyle = R"(
:root { color-scheme: light dark; --ground: #f6f6f3; --card: #ffffff; --text: #1c1d1f; --soft: #5d6166; --rule: #dddfdc;
  --track: #e7e8e4; --shadow: #0004; --c0: #2f6f9f; --c1: #d98032; --c2: #4f9a63; --c3: #b1506f; --c4: #7a68b3; --c5: #a58a2d;
  --c6: #3f9c9c; --c7: #8a8d91; --good: #2f7d4a; --bad: #b03a3a; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15171a; --card: #1e2125; --text: #e8e8e6; --soft: #a0a5ab; --rule: #33373c; --track: #31353a; --shadow: #fff5;
    --c0: #64a9dc; --c1: #e89b57; --c2: #74bf89; --c3: #d97f9c; --c4: #a596dc; --c5: #cdb457; --c6: #6cc4c4;
    --c7: #9ba0a6; --good: #74bf89; --bad: #e98080; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.45rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.02rem; margin: 0 0 .5rem; overflow-wrap: anywhere; } main > h2 { margin-top: 1.4rem; }
h3 { font-size: .88rem; margin: 1rem 0 .25rem; font-weight: 600; }
p { margin: .35rem 0; } .soft, figcaption { color: var(--soft); font-size: .85rem; } .soft { overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.tile, section { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; }
.tile { padding: .55rem .75rem; } .tile b { display: block; font-size: 1.3rem; line-height: 1.25; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; } .tile span { color: var(--soft); font-size: .82rem; } .tile.bad b { color: var(--bad); }
.cards { columns: 22rem 2; column-gap: .8rem; margin-bottom: .8rem; }
section { padding: .9rem 1rem; margin-bottom: .8rem; break-inside: avoid; } section.long { break-inside: auto; }
figure { margin: .6rem 0 0; } svg { display: block; width: 100%; height: auto; overflow: visible; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
td, th { padding: .22rem .5rem .22rem 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; } td.n, th.n { text-align: right; padding: .22rem 0 .22rem .5rem;
  white-space: nowrap; overflow-wrap: normal; } tr:last-child td { border-bottom: 0; }
td.bar { width: 26%; vertical-align: middle; } .share { height: .55rem; }
.columns h3 { margin-top: 0; } .columns table { table-layout: fixed; }
.columns td.bar { width: 26%; vertical-align: top; padding-top: .55rem; } .columns td.n { width: 15%; }
.columns h3 { overflow-wrap: anywhere; } .columns { columns: 22rem 2; column-gap: 2rem; } .columns > div { break-inside: avoid; padding-bottom: .6rem; }
/* A shadow at the edge beyond which a table continues; it disappears when that end is reached. */
.scroll { overflow-x: auto; background: linear-gradient(to right, var(--card) 30%, transparent) left / 3rem 100%,
  linear-gradient(to left, var(--card) 30%, transparent) right / 3rem 100%,
  linear-gradient(to right, var(--shadow), transparent) left / 1rem 100%,
  linear-gradient(to left, var(--shadow), transparent) right / 1rem 100%, var(--card);
  background-repeat: no-repeat; background-attachment: local, local, scroll, scroll; }
.scroll td, .scroll th { white-space: nowrap; overflow-wrap: normal; }
.scroll td:first-child { position: sticky; left: 0; background: var(--card); padding-right: .4rem; } .scroll td.inner { padding-left: 1rem; }
.scroll td.words { white-space: normal; overflow-wrap: anywhere; min-width: 5.2rem; }
.scroll td.note { padding-left: .8rem; min-width: 12rem; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: 0 .8rem; }
b.bad, span.bad { color: var(--bad); } span.good { color: var(--good); } .sample td { width: 50%; white-space: pre-line; }
.key { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px; margin-right: .4rem; }
.tick { font: 11px system-ui, sans-serif; fill: var(--soft); } line.grid { stroke: var(--rule); stroke-width: .7; }
.line { fill: none; stroke: var(--c0); stroke-width: 1.4; } .area { fill: var(--c0); opacity: .16; } .track { fill: var(--track); }
.c0 { fill: var(--c0); background: var(--c0); } .c1 { fill: var(--c1); background: var(--c1); }
.c2 { fill: var(--c2); background: var(--c2); } .c3 { fill: var(--c3); background: var(--c3); }
.c4 { fill: var(--c4); background: var(--c4); } .c5 { fill: var(--c5); background: var(--c5); }
.c6 { fill: var(--c6); background: var(--c6); } .c7 { fill: var(--c7); background: var(--c7); }
@media print {
  :root { color-scheme: light; --ground: #fff; --card: #fff; --text: #000; --soft: #444; --rule: #bbb; --track: #e5e5e5; --shadow: transparent;
    --c0: #2f6f9f; --c1: #d98032; --c2: #4f9a63; --c3: #b1506f; --c4: #7a68b3; --c5: #a58a2d; --c6: #3f9c9c;
    --c7: #8a8d91; --good: #2f7d4a; --bad: #b03a3a; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  .cards { columns: 2; } .columns { columns: auto; } .tiles { grid-template-columns: repeat(6, 1fr); } .tile, tr { break-inside: avoid; } }
)";

}  // namespace sheaf
