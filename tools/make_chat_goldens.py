#!/usr/bin/env python3
"""Writes tests/tokenizer/goldens/chat.json and dialogs.json: prompts rendered from the models' own chat templates, and
jinja.json: small templates with what Jinja renders of them. Run from the project root, with ../shared/tokenizers and
build/models present:

    pip install jinja2==3.1.6
    tools/make_chat_goldens.py

`tools/make_chat_goldens.py harmony` writes harmony.json alone, of the openai-harmony package (0.0.8), which reads the
vocabulary from the folder that TIKTOKEN_ENCODINGS_BASE names (o200k_base.tiktoken).
"""
import json
import pathlib
import sys

import jinja2
import jinja2.sandbox

SHARED = pathlib.Path("../shared/tokenizers")
OUT = pathlib.Path("tests/tokenizer/goldens")


class Refusal(Exception):
    pass


def refuse(message):
    raise Refusal(message)


# As transformers sets it up.
ENV = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
ENV.globals["raise_exception"] = refuse


def chat():
    def render(name, system, **more):
        messages = ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": "How many\nlegs?"}]
        return ENV.from_string((SHARED / name).read_text()).render(
            messages=messages, add_generation_prompt=True, bos_token="", eos_token="</s>", **more)

    return [
        {"template": "qwen3", "system": s, "text": render("Qwen-Qwen3-0.6B.jinja", s, enable_thinking=False)} for s in ["", "Be brief."]
    ] + [{"template": "llama3.1", "system": "", "text": render("meta-llama-Llama-3.1-8B-Instruct.jinja", "")}] + [
        {"template": "mistral", "system": s, "text": render("mistralai-Mistral-Nemo-Instruct-2407.jinja", s)} for s in ["", "Be brief."]]


def gguf_template(path):
    """The chat template in a GGUF file."""
    data = pathlib.Path(path).read_bytes()
    at = data.index(b"tokenizer.chat_template") + len(b"tokenizer.chat_template") + 4
    size = int.from_bytes(data[at:at + 8], "little")
    return data[at + 8:at + 8 + size].decode()


def dialogs():
    models = {"qwen3": (SHARED / "Qwen-Qwen3-0.6B.jinja").read_text(),
              "llama3.1": (SHARED / "meta-llama-Llama-3.1-8B-Instruct.jinja").read_text(),
              "smollm2": gguf_template("build/models/smollm2.gguf")}
    think = "<think>\nHm, legs.\n</think>\n\n"
    tool = "<tool_response>\n4\n</tool_response>"
    turns = [["How many legs?"], [" One\n", "Two.\n", "Three? "], ["a", "b", "c", "\n\nd", "e"],
             # Thoughts in earlier answers: whole, empty, without their beginning, twice, after the last question.
             ["a", think + "b", "c", "<think>\n\n</think>\n\nd", "e"], ["a", "so\n</think>\nb", "c"],
             ["a", think + "b" + think + "\nc", "d"], ["a", think + "b", tool], ["a", "<think></think>b", tool, think + "\nc\n", tool],
             [tool, think + "b", tool], ["a", "</think>", "b"], ["a", "<think>b", "c"]]
    out = []
    for name, template in models.items():
        for system in [None, "Be brief.\n"]:
            for texts in turns:
                messages = [{"role": "system", "content": system}] if system else []
                messages += [{"role": "assistant" if i % 2 else "user", "content": t} for i, t in enumerate(texts)]
                text = ENV.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token="",
                                                        eos_token="", enable_thinking=False)
                out.append({"template": name, "system": system, "turns": texts, "text": text})
    return out


# Templates that must render as Jinja does.
JINJA = [
    # White space around tags.
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a \n {%- if true -%} \n b {%- endif %}\n\nc\n\n", "x {%+ if true +%}\ny{% endif %}",
    "  {{ 'a' }}\n  {{- 'b' -}}\n  c", "  {# c #}\n a {#- d -#}  b {# e\nf #}\ng", "{% set a = 1 %}\n\n{{ a }}\n", "\r\n a\r\n{% if 1 %}\r\nb\r{% endif %}",
    "{{ '{{' }} { % } }} %} {", "{{ {'a': {'b': 'c'}}['a']['b'] }}", "a{% if true %} {% endif %} b", "x\n \t{% if true %}\t\ny{% endif %}",
    # Strings and their escapes.
    r"""{{ "a\n\t\\\"\'b\x41\u00e9\U0001f600\q" ~ 'c"d' "e" }}""", "{{ 'a\nb' }}",
    # Expressions.
    "{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 - 3 - 4 }} {{ -(2) }}", "{{ 'a' ~ 1 ~ true ~ none ~ missing }}",
    "{{ 'a' + 'b' if 1 < 2 else 'c' }}{{ 'x' if false }}|", "{{ 1 == 1 and not 2 == 3 or missing }} {{ '' or 'b' }} {{ 'a' and 'b' }}",
    "{{ 'a' in 'cat' }} {{ 'x' not in ['y'] }} {{ 'role' in messages[0] }} {{ 1 in [1, 2] }} {{ 'a' in missing }} {{ not 'a' in 'b' }}",
    "{{ 'b' > 'a' }} {{ 2 >= 2 }} {{ 1 != true }} {{ 1 == '1' }} {{ [1, 'a'] == [1, 'a'] }} {{ none == missing }} {{ {'a': 1} == {'a': 1} }}",
    "{{ messages[0]['role'] }} {{ messages[0].content }} {{ messages[-1].role }} {{ messages[9] }} {{ messages[0].x is defined }}",
    "{{ messages[1:] | length }} {{ messages[::-1][0].role }} {{ messages[:-1] | length }} {{ messages[-2:9:2] | length }} {{ 'abcdef'[1:-1:2] }}",
    "{{ 'abcdef'[::-2] }}{{ 'abc'[5:] }}{{ 'abc'[-9:2] }}{{ 'abcdef'[4:1:-1] }}{{ 'abc'[2:2] }}", "{{ (1, 2)[1] }} {{ [1, 2, ][0] }}",
    "{{ 'a' ~ 'b' | upper }} {{ 'x' + ' y '|trim + 'z' }} {{ -1 | string }} {{ 'a' is string and 'b' is defined }}",
    # Tests.
    "{{ missing is defined }} {{ missing is not defined }} {{ none is none }} {{ 'a' is string }} {{ messages is iterable }} {{ messages[0] is mapping }}",
    "{{ 1 is number }} {{ true is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 3 is odd }} {{ 3 is even }} {{ 'a' is equalto 'a' }}",
    "{{ messages is sequence }} {{ 'a' is in ['a'] }} {{ missing is undefined }} {{ not missing is defined }} {{ 1 is integer }} {{ 'a' is eq('b') }}",
    # Filters and methods.
    "{{ ' a\n' | trim }}|{{ missing | default('d') }}|{{ '' | default('d') }}|{{ '' | default('d', true) }}|{{ missing | default }}|{{ none | d('x') }}",
    "{{ 'é1' | length }} {{ messages | count }} {{ [1, 2] | first }} {{ [1, 2] | last }} {{ ['a', 'b'] | join(', ') }} {{ [1, 2] | join }}",
    "{{ 'a b,c-d (e' | title }} {{ 'a,b'.title() }} {{ 'aB' | upper }} {{ 'aB'.lower() }} {{ 'aB cD' | capitalize }} {{ \"it's x2y\".title() }} {{ 'a-b' | replace('-', '+') }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', '==', 'user') | list | length }}",
    "{{ messages | selectattr('content') | list | length }} {{ messages | selectattr('x', 'defined') | list | length }}",
    "{{ 'xxaxx'.strip('x') }} {{ ' a '.lstrip() }}| {{ ' a '.rstrip() }}| {{ 'a,b,,c'.split(',') | join('+') }} {{ 'a,b,c'.split(',', 1)[1] }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('x') }} {{ 'a.a'.replace('a', 'bb') }} {{ 'a'.split('</think>')[-1] }} {{ 'aaa'.split('aa') | join('|') }}",
    "{{ messages[0].get('role') }} {{ messages[0].get('x') }} {{ messages[0].get('x', 'y') }} {% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2, 'a': 3} | items %}{{ k }}{{ v }}{% endfor %} {{ {'a': 1}.keys() | join }} {{ {'a': 1}.values() | join }}",
    # Statements.
    "{% if missing %}a{% elif 1 > 2 %}b{% elif 'c' %}c{% else %}d{% endif %}{% if none %}e{% else %}f{% endif %}",
    "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content }}{{ loop.last }}{% else %}none{% endfor %}",
    "{% for m in [] %}a{% else %}b{% endfor %}{% for m in missing %}a{% endfor %}{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }} {% endfor %}",
    "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else '-' }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% set x = 1 %}{% for m in messages %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 5 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0, t='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.t = ns.t ~ m.role[:1] %}{% endfor %}{{ ns.n }}{{ ns.t }}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.i = 0 %}{{ ns.i }}{% set t %}<{{ messages[0].role }}>\n{% endset %}{{ t }}{{ t | length }}",
    "{% set t = 'a', 'b' %}{{ t[1] }}{% set messages = messages[1:] %}{{ messages[0].role }}", "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(2, 4) %}{{ i }}{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }}{% endfor %}{{ loop.index }}{% endfor %}{{ loop is defined }}",
    "{% macro f(x, y='a') %}{{ x }}{% endmacro %}ok", "{% if (messages[0].role == 'user') != (1 % 2 == 0) %}a{% endif %}",
    "{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ enable_thinking is defined }}{{ enable_thinking is false }}", "{{ dict(a=1, b='c')['b'] }}",
    "{% set a = messages[0] %}{{ a == messages[0] }}{{ a == messages[1] }}{{ messages + [a] | length if false else 'x' }}{{ ([1] + [2]) | length }}",
    "{{ 'ab' if 'a' == 'a' and 'b' in 'b' else 'c' }}{{ ('a' ~ 'b').upper() }}{{ 'a' if true else 'b' if false else 'c' }}",
]
# Templates that refuse the dialog by themselves.
REFUSING = ["{{ raise_exception('Only user and ' + messages[0].role) }}", "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}x"]


def jinja():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": ""}]
    out = []
    for template in JINJA + REFUSING:
        given = {"template": template}
        try:
            given["text"] = ENV.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token="<s>",
                                                             eos_token="</s>", enable_thinking=False)
        except Refusal as refusal:
            given["refused"] = str(refusal)
        out.append(given)
    return out


def lines(items):
    return "[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in items) + "\n]"


def harmony():
    import openai_harmony as h
    encoding = h.load_harmony_encoding(h.HarmonyEncodingName.HARMONY_GPT_OSS)
    says = h.Message.from_role_and_content
    out = []
    for level in ("low", "medium", "high"):
        for system in [None, "Be brief.\n"]:
            for texts in [["How many legs?"], [" One\n", "Two.\n", "Three? "], ["a", "b", "c", "\n\nd", "e"]]:
                about = h.SystemContent.new().with_reasoning_effort(h.ReasoningEffort[level.upper()])
                messages = [says(h.Role.SYSTEM, about)]
                if system:
                    messages.append(says(h.Role.DEVELOPER, h.DeveloperContent.new().with_instructions(system)))
                for i, text in enumerate(texts):
                    messages.append(says(h.Role.ASSISTANT, text).with_channel("final") if i % 2 else says(h.Role.USER, text))
                tokens = encoding.render_conversation_for_completion(h.Conversation.from_messages(messages), h.Role.ASSISTANT)
                out.append({"reasoning": level, "system": system, "turns": texts, "text": encoding.decode_utf8(tokens)})
    return out


if sys.argv[1:] == ["harmony"]:
    (OUT / "harmony.json").write_text(lines(harmony()) + "\n")
    sys.exit()
(OUT / "chat.json").write_text(lines(chat()) + "\n")
(OUT / "dialogs.json").write_text(lines(dialogs()) + "\n")
(OUT / "jinja.json").write_text(lines(jinja()) + "\n")
