#!/usr/bin/env python3
"""Writes tests/tokenizer/goldens/ids.json: hostile strings with the ids that the reference tokenizers give. Run from the
project root, with ../shared/tokenizers present:

    pip install tokenizers==0.23.3 sentencepiece==0.2.2 tiktoken==0.14.0 gguf==0.19.0
    tools/make_tokenizer_goldens.py [o200k]

`o200k` makes goldens/o200k alone, which needs no files: a small vocabulary that is learned here, with the pattern and the
special tokens of gpt-oss.
"""
import base64
import json
import pathlib
import random
import sys

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SHARED = pathlib.Path("../shared/tokenizers")
OUT = pathlib.Path("tests/tokenizer/goldens")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
O200K_WORD = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
              r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
O200K = O200K_WORD + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CL100K.replace("{1,3}", "")


def from_tokenizer(tokenizer):
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def from_gguf(path, pre_tokenizer, normalizer=None):
    import gguf
    fields = gguf.GGUFReader(path).fields
    read = lambda key: fields["tokenizer.ggml." + key].contents()
    words, types = read("tokens"), read("token_type")
    model = models.BPE({word: i for i, word in enumerate(words)}, [tuple(m.split(" ")) for m in read("merges")])
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens([AddedToken(w, normalized=False, special=True) for w, t in zip(words, types) if t == 3])
    tokenizer.add_tokens([AddedToken(w, normalized=False) for w, t in zip(words, types) if t == 4])
    return from_tokenizer(tokenizer)


def from_tiktoken(path):
    ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in open(path))}
    names = ["<|begin_of_text|>", "<|end_of_text|>"] + [f"<|reserved_special_token_{i}|>" for i in range(4)]
    names += ["<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(5, 251)]
    encoding = tiktoken.Encoding("llama3", pat_str=CL100K, mergeable_ranks=ranks,
                                 special_tokens={n: len(ranks) + i for i, n in enumerate(names)})
    return lambda text: encoding.encode(text, allowed_special="all")


def from_sentencepiece(path):
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode


byte_level = lambda **k: pre_tokenizers.ByteLevel(add_prefix_space=False, **k)
split = lambda regex: pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), byte_level(use_regex=False)])
# name: the encoder, and whether special tokens spelled out in text are part of the comparison
MODELS = lambda: {
    "smollm2": (from_gguf("build/models/smollm2.gguf", pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)])), True),
    "gpt-2": (from_gguf(SHARED / "checks/ggml-vocab-gpt-2.gguf", byte_level(use_regex=True)), True),
    "qwen2": (from_gguf(SHARED / "checks/ggml-vocab-qwen2.gguf", split(QWEN), normalizers.NFC()), True),
    "qwen3": (from_tokenizer(Tokenizer.from_file(str(SHARED / "qwen3/tokenizer.json"))), True),
    "olmo2": (from_tokenizer(Tokenizer.from_file(str(SHARED / "olmo2/tokenizer.json"))), True),
    "llama3": (from_tiktoken(SHARED / "llama3/tokenizer.model"), True),
    "llama2": (from_sentencepiece(SHARED / "llama2/tokenizer.model"), False),
    "llama-spm": (from_sentencepiece(SHARED / "llama2/tokenizer.model"), False),
    "mistral-v1": (from_sentencepiece(SHARED / "mistral-v1/tokenizer.model"), False),
}

HOSTILE = [
    "", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", " \n \n", "\t", "\t\t x", "\r\n\r\n", "a\r\nb", " a", "  a", "   a  b",
    "Hello, world!", " Hello   world ", "it's IT'S they're THEY'RE I'm I'M we'll WE'LL we'Ll he'd HE'D don't DON'T 've'VE",
    "'ſ 'ſs x'ſ", "'K 'ss ''s '", "’s ‘t", "1 12 123 1234 12345678", "3.14159e-10", "１２３ ٤٥٦ ⅷ ½ ² ①", "𑷠𑷡 𖿴",
    "\0", "a\0b\0\0", "\x01\x02\x1f\x7f\x80\x85\x9f", "x\u00a0y\u2003z\u3000w\u1680v\u2028u\u2029", "\u200b\u180e\ufeff",
    "é e\u0301 E\u0301 \u0301", "A\u030a Å \u212b \u212a \u2126", "q\u0307\u0323 q\u0323\u0307", "\u1100\u1161\u11a8 각 \u1100\u1161",
    "가나다라마바사", "日本語の文章です。中文字符，標點！", "ไทยไม่มีช่องว่าง", "हिन्दी में लिखा", "שלום עולם", "مرحبا بالعالم ١٢٣", "កាន់តែពិសេស",
    "Привет, мир! Ёлка", "Ελληνικά ΣΊΣΥΦΟΣ", "ẞ ß ﬁ ﬃ ǅ ŉ İ ı", "🦙 🤷🏽‍♀️ 👨‍👩‍👧‍👦 🇩🇪 1️⃣ ❤️‍🔥", "\U0001f9ff\U000e0041\U0010ffff\ue000",
    "\ufffd\ufffe\uffff", "a" * 70, "ab" * 40, " " * 70, "\n" * 40, "=" * 50, "!?" * 30, "(((((())))))", "---\n\n---\n", "...\r\n\r\n",
    "x  \n\n  y", "\t\n\t x", "foo_bar fooBar FOO_BAR foo-bar", "def f(x):\n    return x**2  # ok\n", "<a href=\"x\">&amp;</a>",
    "http://example.org/a?b=c&d=%20", "C:\\dir\\file", "{\"k\": [1, 2.5, null]}\n", "\u2581a\u2581\u2581b", "\u2581", "<0x41><0x0A>",
    "naïve café résumé", "Zürich Straße", "Ω≈ç√∫˜µ≤≥÷", "x²+y³≠z₁", "№ ™ ℃", "ⓐⓑ ㊗ ㍿", "ᚠᛇᚻ ⠓⠑ 𝕳𝖊𝖑𝖑𝖔 𐍈 𒀀", "a\u0300\u0301\u0302\u0303\u0304b",
    "\u0e33\u0f77\u0f71\u0f72", "\ud7a3\u11a8", "ａＢｃ！", "\u202eright-to-left\u202c", "mixed日本abc한국АБВ123",
]
SPECIAL = [
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", " <|endoftext|> x", "a<|im_end|>b<|im_end|>",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", "<think>\n\n</think>\n\nx", "<|im_", "<|im_end|",
    "<tool_call>{}</tool_call>", "|||EMAIL_ADDRESS|||x|||PHONE", "<|reserved_special_token_250|>", "<repo_name>a<file_sep>", "<s>x</s>",
]


def random_strings(count):
    rng = random.Random(20240229)
    ranges = [(0, 0x80), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600), (0x600, 0xE00), (0xE00, 0x1200), (0x2000, 0x2C00),
              (0x3000, 0x3400), (0x4E00, 0x5000), (0xA000, 0xD7A4), (0xE000, 0x10000), (0x10000, 0x12000), (0x1D400, 0x1FB00)]
    pieces = [" ", "  ", "\n", "'s", "'LL", "the", " of", "123", "!", "\t"]
    out = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 12)):
            text += rng.choice(pieces) if rng.random() < 0.5 else chr(rng.randrange(*rng.choice(ranges)))
        out.append(text)
    return out


def lines(items):
    return "[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in items) + "\n]"


def o200k(texts):
    """A small tokenizer.json with gpt-oss's pattern and special tokens, and the ids that it and tiktoken give."""
    special = ["<|startoftext|>", "<|endoftext|>", "<|return|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>", "<|call|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split(O200K)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=900, min_frequency=2, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([pathlib.Path(__file__).read_text()] + texts * 3, trainer)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    folder = OUT / "o200k"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    unicode_bytes = {c: i for i, c in byte_characters().items()}
    ranks = {bytes(unicode_bytes[c] for c in token): i for token, i in tokenizer.get_vocab(False).items()}
    other = tiktoken.Encoding("small", pat_str=O200K, mergeable_ranks=ranks,
                              special_tokens={name: tokenizer.token_to_id(name) for name in special})
    harmony = ["<|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>final<|message|>", "a<|return|> b", "<|end", "<|call|>"]
    ids = []
    for text in texts + harmony:
        ids.append(tokenizer.encode(text, add_special_tokens=False).ids)
        if ids[-1] != other.encode(text, allowed_special="all"):
            raise SystemExit(f"tokenizers and tiktoken differ: {text!r}")
    (folder / "ids.json").write_text(f'{{"text": {lines(texts + harmony)},\n"ids": {lines(ids)}}}\n')


def byte_characters():
    """GPT-2's character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(sorted(set(range(256)) - set(plain)))}


OUT.mkdir(parents=True, exist_ok=True)
texts = HOSTILE + random_strings(40)
o200k(texts)
if sys.argv[1:] == ["o200k"]:
    sys.exit()
parts = [f'"text": {lines(texts)}', f'"special": {lines(SPECIAL)}']
for name, (encode, special) in MODELS().items():
    wanted = texts + (SPECIAL if special else [])
    parts.append(f'{json.dumps(name)}: {lines([encode(text) for text in wanted])}')
(OUT / "ids.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")
