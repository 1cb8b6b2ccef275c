# SPDX-License-Identifier: Apache-2.0
"""Makes tiny random Llama and Qwen2 folders and what PyTorch says about them.

    python make_models.py OUT

writes, for each model, a folder as Hugging Face would (`config.json`,
`tokenizer.json`, safetensors) and beside it `cases.json`:

    strings   1,000 texts: Unicode, code, runs of white space
    ids       their token ids without special tokens of the template
    prefix    ids that the template puts first
    scores    prompts, actions, and the log-probability of each action token

The tokenizers are trained here, on the standard library's own source, with the
pre-tokenizers of Llama 3, Qwen2, GPT-2 and DeepSeek-Coder; the last two have no
model. Everything is seeded.
"""

import json
import pathlib
import random
import sys
import unicodedata

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
VOCAB_SIZE = 1200


def training_text():
    folder = pathlib.Path(json.__file__).parent.parent
    for name in ("argparse.py", "ast.py", "heapq.py", "textwrap.py", "json/decoder.py"):
        yield from (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    yield "naïve café über straße Привет мир 你好世界 こんにちは 안녕하세요 नमस्ते مرحبا\n" * 20


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False)


def train(pre_tokenizer, specials, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=specials,
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_text(), trainer)
    return tokenizer


def byte_level(**options):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False, **options)


def llama_tokenizer():
    tokenizer = train(
        pre_tokenizers.Sequence([split(LLAMA3), byte_level()]),
        ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
        ignore_merges=True,
    )
    begin = "<|begin_of_text|>"
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=[begin, "$A"],
                pair=[begin, "$A", begin, "$B:1"],
                special_tokens=[(begin, tokenizer.token_to_id(begin))],
            ),
        ]
    )
    return tokenizer


def qwen2_tokenizer():
    tokenizer = train(
        pre_tokenizers.Sequence([split(QWEN2), byte_level()]),
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        normalizer=normalizers.NFC(),
    )
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False)])
    return tokenizer


def gpt2_tokenizer():
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=True), ["<|endoftext|>"])
    tokenizer.add_tokens(
        [
            AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False),
            AddedToken("kernel", single_word=True, normalized=True),
        ]
    )
    return tokenizer


def deepseek_tokenizer():
    steps = [split(p) for p in (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+")]
    steps += [pre_tokenizers.Digits(individual_digits=True), byte_level()]
    return train(pre_tokenizers.Sequence(steps), ["<|EOT|>"])


BLOCKS = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
    (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF),
    (0x2000, 0x206F), (0x2070, 0x20CF), (0x2100, 0x23FF), (0x2500, 0x27BF), (0x3000, 0x30FF),
    (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFF00, 0xFFEF), (0x10330, 0x1034A),
    (0x1D400, 0x1D7FF), (0x1F300, 0x1F64F), (0x20000, 0x2A6D6),
]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", "\v", "\f", "\u0085", "\u00a0", "\u1680",
          "\u180e", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff"]
WORDS = ["fuse", "GELU", "don't", "I'LL", "we'Ve", "it'ſ", "e\u0301", "n\u0303o", "Å", "한국어",
         "\u1112\u1161\u11ab", "ﬁne", "½", "²", "١٢٣", "一二三", "👩‍💻", "🇩🇪", "kernel", "kernels",
         "__global__", "blockIdx.x*256", "0x1F", "3.14159", "1e-4", "12345678", "->", "//@ mtmc 1",
         "<mask>", "<|im_start|>", "<tool_call>", "<|begin_of_text|>", "<|eot_id|>", "\u0000", "\u007f"]


def random_character(rng):
    while True:
        character = chr(rng.randint(*rng.choice(BLOCKS)))
        if unicodedata.category(character) not in ("Cn", "Cs"):
            return character


def random_string(rng, code):
    kind = rng.randrange(5)
    if kind == 0:
        return "".join(random_character(rng) for _ in range(rng.randint(1, 40)))
    if kind == 1:
        return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 20)))
    if kind == 2:
        start = rng.randrange(len(code) - 6)
        return "".join(code[start : start + rng.randint(1, 6)])
    if kind == 3:
        return "".join(rng.choice(WORDS + SPACES) for _ in range(rng.randint(1, 15)))
    return "".join(
        rng.choice([random_character(rng), rng.choice(WORDS), rng.choice(SPACES), " "])
        for _ in range(rng.randint(1, 60))
    )


def test_strings():
    rng = random.Random(20)
    code = list(training_text())
    strings = ["", " ", "\n", "a", "x" * 3000, " " * 3000, "ab " * 500]
    while len(strings) < 1000:
        strings.append(random_string(rng, code))
    return strings


PROMPTS = [
    "Choose the next optimization of this program.\nReference:\n"
    "gelu: f32[128,512] = aten::gelu.default(linear)  # line 21\nNext action:",
    "Précision: tf32 你好\n" + "//@ launch k grid=1 block=256 args=(x, y)\n" * 12 + "Next action:",
    "Next action:",
]
ACTIONS = ["stop", "fuse gelu into gemm_0 (lines 21-24)", "capture",
           "library linear with precision=tf32", "vectorize über_kernel", "tune softmax_0"]


def score(model, tokenizer, prompt, actions):
    prompt_ids = tokenizer.encode(prompt).ids
    scores = []
    for action in actions:
        action_ids = tokenizer.encode(" " + action, add_special_tokens=False).ids
        ids = torch.tensor([prompt_ids + action_ids])
        with torch.no_grad():
            logits = model(ids).logits[0].double()
        log_probabilities = torch.log_softmax(logits, dim=-1)
        first = len(prompt_ids) - 1
        scores.append([log_probabilities[first + i, t].item() for i, t in enumerate(action_ids)])
    return {"prompt": prompt, "actions": actions, "log_probabilities": scores}


def write(folder, tokenizer, model, strings, **save_options):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    cases = {
        "strings": strings,
        "ids": [tokenizer.encode(s, add_special_tokens=False).ids for s in strings],
        "prefix": tokenizer.encode("", add_special_tokens=True).ids,
        "scores": [],
    }
    if model is not None:
        model.eval()
        model.save_pretrained(folder, **save_options)
        cases["scores"] = [score(model, tokenizer, p, ACTIONS) for p in PROMPTS]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def shape(tokenizer, **options):
    # A wide initial range makes the distributions far from uniform, so that a
    # wrong rotation or mask is seen.
    defaults = dict(
        vocab_size=tokenizer.get_vocab_size() + 8, hidden_size=64, intermediate_size=112,
        num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2,
        max_position_embeddings=1024, initializer_range=0.25, attn_implementation="eager",
    )
    return {**defaults, **options}


def main():
    out = pathlib.Path(sys.argv[1])
    strings = test_strings()
    torch.manual_seed(7)
    llama3_rope = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                   "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 64}
    yarn_rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                 "original_max_position_embeddings": 256}
    linear_rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}

    llama = llama_tokenizer()
    write(out / "llama", llama,
          LlamaForCausalLM(LlamaConfig(**shape(llama, rope_parameters=llama3_rope))), strings)
    write(out / "llama_yarn", llama,
          LlamaForCausalLM(LlamaConfig(**shape(llama, rope_parameters=yarn_rope, head_dim=16,
                                               attention_bias=True, mlp_bias=True))), strings[:50])
    write(out / "llama_linear", llama,
          LlamaForCausalLM(LlamaConfig(**shape(llama, rope_parameters=linear_rope,
                                               tie_word_embeddings=True))), strings[:50])
    qwen2 = qwen2_tokenizer()
    write(out / "qwen2", qwen2,
          Qwen2ForCausalLM(Qwen2Config(**shape(qwen2, tie_word_embeddings=True,
                                               use_sliding_window=False))),
          strings, max_shard_size="200KB")
    write(out / "gpt2_tokenizer", gpt2_tokenizer(), None, strings)
    write(out / "deepseek_tokenizer", deepseek_tokenizer(), None, strings)


if __name__ == "__main__":
    main()
