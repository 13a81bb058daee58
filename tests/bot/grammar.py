"""Questions made from known workloads: what is asked for is drawn first, then words are found for it.

Independent of the lexicon: the phrasing here is what a person might type, in English or Spanish, with the parts in any
order, in either number convention, with typing errors in the words that carry no meaning. `questions()` draws a text
together with the fields that a reader must find in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Draw = Any


@dataclass
class Asked:
    """A workload and the text that asks for it."""

    lang: str
    fields: dict[str, Any] = field(default_factory=dict)
    text: str = ""


# (normalised name, billions, ways to write it)
MODELS = (
    ("Llama-3.1-8B", 8, ("llama 3.1 8b", "Llama-3.1-8B-Instruct", "LLaMA3.1 8B", "llama3.1-8b")),
    ("Llama-3-70B", 70, ("llama 3 70b", "Llama-3-70B", "llama3 70B instruct")),
    ("Llama-2-13B", 13, ("llama 2 13b", "llama-2-13b-chat", "Llama2 13B")),
    ("Qwen2.5-14B", 14, ("qwen2.5 14b", "Qwen2.5-14B-Instruct", "qwen 2.5 14B")),
    ("Qwen2.5-72B", 72, ("Qwen2.5-72B", "qwen2.5 72b instruct")),
    ("Mistral-7B", 7, ("mistral 7b", "Mistral-7B", "mistral-7B-instruct")),
    ("gemma-2-27B", 27, ("gemma 2 27b", "gemma-2-27b-it", "Gemma2 27B")),
    ("Yi-34B", 34, ("yi 34b", "Yi-34B", "yi-34b-chat")),
)
SIZES = (1, 3, 7, 8, 13, 14, 20, 30, 32, 34, 65, 70, 120)
# (normalised name, ways to write it)
CARDS = (
    ("RTX 3090", ("3090", "RTX 3090", "rtx3090", "GeForce RTX 3090")),
    ("RTX 4090", ("4090", "RTX 4090", "rtx-4090", "nvidia 4090")),
    ("RTX 5090", ("5090", "RTX 5090")),
    ("A100-80GB", ("A100 80GB", "A100-80GB", "a100 80g", "A100 (80 GB)")),
    ("A100-40GB", ("A100 40GB", "a100 40g", "A100-40GB")),
    ("H100", ("H100", "h100", "nvidia H100")),
    ("L40S", ("L40S", "l40s")),
    ("L4", ("L4", "nvidia L4")),
    ("T4", ("T4", "tesla T4", "t4")),
    ("A10G", ("A10G", "a10g")),
    ("V100-32GB", ("V100 32GB", "v100 32g", "Tesla V100 32GB")),
    ("RTX A6000", ("A6000", "RTX A6000", "rtx a6000")),
    ("MI300X", ("MI300X", "mi300x", "AMD MI300X")),
)
FORMATS = (
    (
        "fp16",
        {"en": ("in fp16", "half precision", "fp16 weights"), "es": ("en fp16", "a media precisión", "en 16 bits")},
    ),
    ("bf16", {"en": ("in bf16", "bfloat16", "bf16"), "es": ("en bf16", "con pesos bf16")}),
    ("fp8", {"en": ("at fp8", "fp8", "quantised to FP8"), "es": ("en fp8", "cuantizado a fp8")}),
    ("int8", {"en": ("in 8-bit", "int8", "8bit", "8 bit quantised"), "es": ("en 8 bits", "a 8 bits", "int8")}),
    ("int4", {"en": ("in 4-bit", "4bit", "int4", "q4"), "es": ("en 4 bits", "a 4 bits", "en q4", "int4")}),
    ("awq", {"en": ("awq", "AWQ quant", "the awq build"), "es": ("en awq", "versión AWQ")}),
    ("gguf:Q4_K_M", {"en": ("Q4_K_M", "the q4_k_m gguf", "q4_K_M"), "es": ("en Q4_K_M", "gguf q4_k_m")}),
    ("gguf:Q5_K_M", {"en": ("Q5_K_M", "q5_k_m"), "es": ("en Q5_K_M", "q5_k_m")}),
)
PLACES = (
    ("cloud", {"en": ("in the cloud", "rented by the hour", "on aws"), "es": ("en la nube", "alquilado", "en aws")}),
    ("on_prem", {"en": ("on prem", "at home", "on premises"), "es": ("en local", "on premise", "en casa")}),
)
ENGINES = (
    ("vllm", ("vLLM", "vllm")),
    ("sglang", ("SGLang", "sglang")),
    ("ollama", ("ollama", "Ollama")),
    ("llama.cpp", ("llama.cpp", "llamacpp")),
    ("tgi", ("TGI",)),
)
TRAINERS = (
    ("axolotl", ("axolotl", "Axolotl")),
    ("unsloth", ("unsloth", "Unsloth")),
    ("trl", ("TRL", "trl")),
    ("llama-factory", ("LLaMA-Factory", "llamafactory")),
    ("torchtune", ("torchtune",)),
)
CONTEXTS = (2048, 4096, 8192, 16384, 32768, 131072, 3000, 6000, 12000)
WORDED = {"en": {2: "two", 3: "three", 4: "four", 8: "eight"}, "es": {2: "dos", 3: "tres", 4: "cuatro", 8: "ocho"}}
OPENERS = {
    "en": (
        "", "", "hey team,", "quick question:", "so I was wondering,", "hi there!", "sanity check please -",
        "my manager is asking:", "newbie here,", "morning all,", "could someone tell me:", "thinking out loud:",
    ),
    "es": (
        "", "", "hola equipo,", "una duda rápida:", "buenas,", "perdonad la molestia:", "me preguntan esto:",
        "buenos días,", "estoy pensando una cosa:", "consulta tonta:", "a ver si alguien sabe:",
    ),
}  # fmt: skip
CLOSERS = {
    "en": ("", "", "?", " please?", " thanks!", ", thoughts?", " - is that realistic?", ". cheers", "??"),
    "es": ("", "", "?", " ¿cómo lo veis?", " gracias", ". un saludo", ", ¿es realista?", " porfa", "??"),
}
JOINTS = (", ", ", ", " ", "; ", " - ", " / ", "\n")


def _one(draw: Draw, options: Any) -> Any:
    return draw(st.sampled_from(tuple(options)))


def _typo(draw: Draw, words: str) -> str:
    """The words with one letter of a long word dropped, doubled or swapped."""
    places = [i for i, w in enumerate(words.split(" ")) if len(w) >= 6 and w.isalpha()]
    if not places or draw(st.integers(0, 3)):
        return words
    split = words.split(" ")
    i = _one(draw, places)
    w = split[i]
    k = draw(st.integers(1, len(w) - 3))
    split[i] = _one(draw, (w[:k] + w[k + 1 :], w[:k] + w[k] + w[k:], w[:k] + w[k + 1] + w[k] + w[k + 2 :]))
    return " ".join(split)


def _thousands(draw: Draw, n: int, lang: str) -> str:
    """A whole number with or without its language's thousands mark."""
    mark = "," if lang == "en" else "."
    return _one(draw, (str(n), f"{n:,}".replace(",", mark)))


def _decimal(value: float, lang: str) -> str:
    text = f"{value:.2f}"
    return text if lang == "en" else text.replace(".", ",")


def _model(draw: Draw, q: Asked) -> str:
    """The subject: a named model, or a size in one of its notations."""
    if draw(st.booleans()):
        name, size, ways = _one(draw, MODELS)
        q.fields |= {"model": name, "params_b": size}
        return _one(draw, ways if q.lang == "en" else (*ways, *(f"un {w}" for w in ways)))
    size = _one(draw, SIZES)
    q.fields["params_b"] = size
    if q.lang == "en":
        return _one(
            draw, (f"a {size}B", f"a {size}b model", f"some {size} B model", f"a {size} billion parameter model")
        )
    return _one(
        draw,
        (f"un {size}B", f"un modelo de {size}B", f"un {size}b", f"un modelo de {size} mil millones de parámetros"),
    )


def _cards(draw: Draw, q: Asked) -> str:
    name, ways = _one(draw, CARDS)
    n = _one(draw, (1, 1, 2, 3, 4, 8))
    card = _one(draw, ways)
    q.fields["hardware"] = [{"name": name, "count": n}]
    en = q.lang == "en"
    if n == 1:
        return _one(draw, (f"on a {card}", f"on one {card}", f"with a single {card}", f"using my {card}", f"1x {card}")
                    if en else (f"en una {card}", f"con una sola {card}", f"en mi {card}", f"1x {card}"))  # fmt: skip
    word = WORDED[q.lang][n]
    counted = [f"{n}x {card}", f"{n} x {card}", f"{word} {card}"]
    if not card[0].isdigit():
        counted += [f"{n} {card}", f"{n}x{card}"]
    said = _one(draw, counted)
    return _one(draw, (f"on {said}", f"across {said}", f"over {said}", f"I have {said}", f"box with {said}", said)
                if en else (f"en {said}", f"con {said}", f"tengo {said}", f"repartido en {said}", said))  # fmt: skip


def _length(draw: Draw, n: int, lang: str) -> str:
    if n % 1024 == 0 and n // 1024 in (2, 4, 8, 16, 32, 128):
        return _one(draw, (f"{n // 1024}k", f"{n // 1024}K", str(n)))
    return _one(draw, (f"{n // 1000}k", _thousands(draw, n, lang)))


def _context(draw: Draw, q: Asked) -> str:
    n = _one(draw, CONTEXTS)
    q.fields["context"] = n
    k = _length(draw, n, q.lang)
    if q.lang == "en":
        return _one(draw, (f"{k} context", f"{k} ctx", f"context of {k}", f"seq len {k}", f"a {k} context window",
                           f"max_model_len={k}", f"sequences of {k} tokens", f"context length: {k}",
                           f"context up to {k}", f"{k} token sequences"))  # fmt: skip
    return _one(draw, (f"{k} de contexto", f"contexto de {k}", f"con ventana de {k}", f"secuencias de {k} tokens",
                       f"contexto: {k}", f"longitud de secuencia {k}", f"hasta {k} de contexto",
                       f"ventana de contexto de {k}"))  # fmt: skip


def _format(draw: Draw, q: Asked) -> str:
    value, ways = _one(draw, FORMATS)
    q.fields["weights_format"] = value
    return str(_one(draw, ways[q.lang]))


def _users(draw: Draw, q: Asked) -> str:
    n = _one(draw, (3, 5, 12, 25, 40, 100, 250))
    q.fields["concurrency"] = n
    if q.lang == "en":
        return _one(draw, (f"{n} concurrent users", f"{n} users at once", f"{n} simultaneous requests",
                           f"about {n} people at the same time", f"{n} parallel sessions",
                           f"{n} requests in parallel", f"concurrency {n}"))  # fmt: skip
    return _one(draw, (f"{n} usuarios a la vez", f"{n} peticiones simultáneas", f"{n} personas al mismo tiempo",
                       f"unos {n} usuarios concurrentes", f"{n} sesiones en paralelo",
                       f"concurrencia de {n}"))  # fmt: skip


def _rate(draw: Draw, q: Asked) -> str:
    n = _one(draw, (2, 5, 10, 50, 200))
    q.fields["requests_per_s"] = n
    if q.lang == "en":
        return _one(draw, (f"{n} rps", f"{n} req/s", f"{n} requests per second", f"{n} requests a second",
                           f"{n} queries/s", f"peaks of {n} qps"))  # fmt: skip
    return _one(draw, (f"{n} peticiones por segundo", f"{n} peticiones/s", f"{n} rps", f"{n} consultas por segundo",
                       f"picos de {n} solicitudes por segundo"))  # fmt: skip


def _daily(draw: Draw, q: Asked) -> str:
    n = _one(draw, (1, 2, 5, 20, 300))
    q.fields["tokens_per_day"] = n * 1_000_000
    if q.lang == "en":
        return _one(draw, (f"{n}M tokens/day", f"{n} million tokens a day", f"{n}M tokens per day",
                           f"{n} million tokens daily", f"{n},000,000 tokens per day"))  # fmt: skip
    word = "millón" if n == 1 else "millones"
    return _one(draw, (f"{n} {word} de tokens al día", f"{n}M de tokens al día", f"{n} {word} de tokens diarios",
                       f"{n}.000.000 de tokens al día"))  # fmt: skip


def _latency(draw: Draw, q: Asked) -> str:
    n = _one(draw, (100, 200, 500, 800))
    q.fields["latency_ms"] = n
    if q.lang == "en":
        return _one(draw, (f"under {n} ms", f"latency below {n}ms", f"p95 < {n} ms", f"at most {n} ms latency",
                           f"answers within {n} milliseconds"))  # fmt: skip
    return _one(draw, (f"menos de {n} ms", f"latencia por debajo de {n} ms", f"como mucho {n} ms de latencia",
                       f"en menos de {n} milisegundos", f"latencia máxima {n} ms"))  # fmt: skip


def _money(draw: Draw, q: Asked) -> str:
    per = _one(draw, ("once", "once", "hour", "month"))
    amount: float = {"once": _one(draw, (800, 1500, 2500, 12000)), "hour": _one(draw, (1.5, 2.25, 4, 12)),
                     "month": _one(draw, (300, 900, 2000))}[per]  # fmt: skip
    currency = _one(draw, ("USD", "EUR"))
    q.fields["budget"] = {"amount": amount, "currency": currency, "per": per}
    whole = amount == int(amount)
    figure = _thousands(draw, int(amount), q.lang) if whole else _decimal(amount, q.lang)
    if q.lang == "en":
        sign = "$" if currency == "USD" else "€"
        said = _one(
            draw, (f"{sign}{figure}", f"{figure} {currency}", f"{figure} {'dollars' if currency == 'USD' else 'euros'}")
        )
        unit = {
            "once": ("",),
            "hour": ("/h", " per hour", "/hr", " an hour"),
            "month": ("/month", " a month", " per month"),
        }
        head = _one(draw, ("budget", "budget of", "at most", "no more than", "max", "under", "up to"))
    else:
        sign = "$" if currency == "USD" else "€"
        said = _one(draw, (f"{figure} {sign}", f"{figure}{sign}", f"{figure} {'dólares' if sign == '$' else 'euros'}"))
        unit = {
            "once": ("",),
            "hour": ("/hora", " por hora", " la hora", "/h"),
            "month": (" al mes", "/mes", " mensuales"),
        }
        head = _one(draw, ("presupuesto de", "presupuesto:", "como mucho", "máximo", "menos de", "tope de", "hasta"))
    return f"{head} {said}{_one(draw, unit[per])}"


def _hours(draw: Draw, q: Asked) -> str:
    n = _one(draw, (10, 20, 40))
    a_day = _one(draw, (2, 6, 8))
    if draw(st.booleans()):
        q.fields["hours_per_week"] = n
        return _one(draw, (f"{n} hours a week", f"{n}h/week", f"{n} hrs per week") if q.lang == "en" else
                    (f"{n} horas a la semana", f"{n} h por semana", f"{n} horas semanales"))  # fmt: skip
    q.fields["hours_per_week"] = 7 * a_day
    return _one(draw, (f"{a_day} hours a day", f"{a_day}h/day", f"{a_day} hours daily") if q.lang == "en" else
                (f"{a_day} horas al día", f"{a_day} horas diarias", f"{a_day}h al día"))  # fmt: skip


def _batch(draw: Draw, q: Asked) -> str:
    n = _one(draw, (1, 2, 4, 8, 16))
    q.fields["batch"] = n
    english = ("batch size {}", "bs {}", "bs={}", "micro batch {}", "batch of {}", "batch_size={}")
    spanish = ("batch {}", "lote de {}", "tamaño de lote {}", "batch de {}", "bs {}", "lotes de {}")
    return str(_one(draw, english if q.lang == "en" else spanish)).format(n)


def _rank(draw: Draw, q: Asked) -> str:
    n = _one(draw, (8, 16, 32, 64))
    q.fields["lora_rank"] = n
    return _one(draw, (f"rank {n}", f"r={n}", f"r{n}", f"lora_r={n}", f"rank of {n}", f"r = {n}") if q.lang == "en" else
                (f"rango {n}", f"r={n}", f"rank {n}", f"rango de {n}"))  # fmt: skip


def _optimizer(draw: Draw, q: Asked) -> str:
    value, ways = _one(draw, (
        ("adamw_8bit", ("8-bit adam", "adamw_8bit", "8bit adamw")), ("adafactor", ("adafactor", "Adafactor")),
        ("adamw", ("adamw", "AdamW")), ("paged_adamw_8bit", ("paged adamw 8bit", "paged_adamw_8bit")),
        ("lion", ("lion",)),
    ))  # fmt: skip
    q.fields["optimizer"] = value
    way = _one(draw, ways)
    return _one(
        draw, (way, f"with {way}", f"optimizer {way}") if q.lang == "en" else (way, f"con {way}", f"optimizador {way}")
    )


def _samples(draw: Draw, q: Asked) -> str:
    n = _one(draw, (5000, 12000, 50000, 250000))
    q.fields["samples"] = n
    if "context" in q.fields:
        q.fields["dataset_tokens"] = n * q.fields["context"]
    if q.lang == "en":
        ways = ("{k}k samples", "{n} examples", "{k}k rows", "a dataset of {n} rows", "{k} thousand examples")
    else:
        ways = ("{k} mil muestras", "{n} ejemplos", "{k}k ejemplos", "{k} mil ejemplos", "un dataset de {n} filas")
    return str(_one(draw, ways)).format(k=n // 1000, n=_thousands(draw, n, q.lang))


def _dataset(draw: Draw, q: Asked) -> str:
    n, unit = _one(draw, ((2, "M"), (10, "B"), (300, "B"), (1, "T")))
    scale = {"M": 1e6, "B": 1e9, "T": 1e12}[unit]
    q.fields["dataset_tokens"] = n * scale * (100 if unit == "M" else 1)
    n *= 100 if unit == "M" else 1
    if q.lang == "en":
        word = {"M": "million", "B": "billion", "T": "trillion"}[unit]
        return _one(draw, (f"on {n}{unit} tokens", f"{n} {word} tokens", f"a corpus of {n}{unit} tokens"))
    word = {"M": "millones", "B": "mil millones", "T": "billón" if n == 1 else "billones"}[unit]
    return _one(draw, (f"con {n} {word} de tokens", f"{n} {word} de tokens", f"un corpus de {n} {word} de tokens"))


def _memory(draw: Draw, q: Asked) -> str:
    """A card that is only known by its memory."""
    n = _one(draw, (8, 12, 16, 24, 48))
    q.fields["gpu_mem_gb"] = n
    english = ("on a {}GB card", "with {} GB of VRAM", "in {} gigs of vram", "my gpu has {} GB", "a {}gb gpu")
    spanish = ("en una tarjeta de {} GB", "con {} GB de VRAM", "en una gráfica de {} gigas", "{}GB de vram")
    return str(_one(draw, english if q.lang == "en" else spanish)).format(n)


def _place(draw: Draw, q: Asked) -> str:
    where, ways = _one(draw, PLACES)
    q.fields["location"] = where
    return str(_one(draw, ways[q.lang]))


def _engine(draw: Draw, q: Asked) -> str:
    name, ways = _one(draw, ENGINES)
    q.fields["framework"] = name
    way = _one(draw, ways)
    return _one(draw, (f"with {way}", f"in {way}", f"via {way}") if q.lang == "en" else (f"con {way}", f"en {way}"))


def _trainer(draw: Draw, q: Asked) -> str:
    name, ways = _one(draw, TRAINERS)
    q.fields["framework"] = name
    way = _one(draw, ways)
    return _one(draw, (f"with {way}", f"in {way}", f"via {way}") if q.lang == "en" else (f"con {way}", f"usando {way}"))


SERVE = {
    "en": (
        "serve {m}", "I want to run {m}", "we'd deploy {m}", "running {m} for inference", "inference with {m}",
        "hosting {m} behind an API", "{m} for a chatbot", "can I serve {m}", "does {m} run",
    ),
    "es": (
        "quiero servir {m}", "desplegar {m}", "inferencia con {m}", "¿puedo ejecutar {m}", "queremos levantar {m}",
        "correr {m} en producción", "poner en producción {m}", "tirar {m}",
    ),
}  # fmt: skip
TUNE = {
    "full": {
        "en": ("full fine-tune of {m}", "full finetuning {m}", "fine-tune all parameters of {m}", "full FT on {m}"),
        "es": ("fine-tuning completo de {m}", "ajuste fino completo de {m}", "afinar todos los parámetros de {m}"),
    },
    "lora": {
        "en": ("lora fine-tune of {m}", "train a LoRA on {m}", "LoRA on {m}", "tuning {m} with LoRA adapters"),
        "es": ("entrenar un LoRA de {m}", "LoRA sobre {m}", "afinar {m} con lora", "ajuste fino con LoRA de {m}"),
    },
    "qlora": {
        "en": ("qlora of {m}", "QLoRA on {m}", "fine-tuning {m} with QLoRA", "can I qlora {m}"),
        "es": ("qlora de {m}", "hacer QLoRA con {m}", "afinar {m} con qlora", "fine-tunear {m} con QLoRA"),
    },
}
SCRATCH = {
    "en": ("pretrain {m}", "pretraining {m} from scratch", "train {m} from scratch", "we want to pretrain {m}"),
    "es": ("preentrenar {m}", "entrenar {m} desde cero", "preentrenamiento de {m}", "queremos preentrenar {m}"),
}


@st.composite
def questions(draw: Draw) -> Asked:
    """A question with what it says."""
    q = Asked(draw(st.sampled_from(("en", "es"))))
    model = _model(draw, q)
    task = _one(draw, ("serve", "serve", "serve", "tune", "tune", "tune", "pretrain"))
    device = _one(draw, (_cards, _cards, _memory))
    if task == "serve":
        q.fields["task"] = "inference"
        core = _one(draw, SERVE[q.lang]).format(m=model)
        slots = [device, _context, _format, _money, _hours, _latency, _engine, _one(draw, (_users, _rate, _daily))]
    elif task == "pretrain":
        q.fields["task"] = "pretraining"
        core = _one(draw, SCRATCH[q.lang]).format(m=model)
        slots = [_cards, _context, _batch, _optimizer, _money, _hours, _dataset]
    else:
        method = _one(draw, tuple(TUNE))
        q.fields |= {"task": "fine_tuning", "method": method}
        core = _one(draw, TUNE[method][q.lang]).format(m=model)
        slots = [device, _context, _batch, _optimizer, _money, _hours, _samples, _trainer]
        slots += [_rank] if method != "full" else []
    slots += [_place]
    # The length comes before the samples, whose tokens depend on it.
    chosen = draw(st.lists(st.sampled_from(slots), min_size=1, max_size=5, unique=True))
    chosen.sort(key=lambda s: s is _samples)
    said = draw(st.permutations([s(draw, q) for s in chosen]))
    pieces = draw(st.permutations([core, *said])) if draw(st.booleans()) else [core, *said]
    text = pieces[0]
    for piece in pieces[1:]:
        text += _one(draw, JOINTS) + piece
    opener = _typo(draw, _one(draw, OPENERS[q.lang]))
    closer = _typo(draw, _one(draw, CLOSERS[q.lang]))
    text = f"{opener} {text}".strip() + closer
    q.text = _one(draw, (text, text, text, text.lower(), text[0].upper() + text[1:]))
    return q
