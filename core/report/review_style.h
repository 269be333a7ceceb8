#pragma once
#include <string_view>

namespace sheaf {

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
