"""Memory of encoders, speech, vision, diffusion and classical models: figures that can be checked by hand."""

from __future__ import annotations

import pytest

from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.media import (
    classical_kinds,
    classical_spec,
    inference_footprint,
    media_total_bytes,
    recognise_classical,
    training_footprint,
)
from rules.units import GIB
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef, TrainingWorkload

SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
FLUX = "black-forest-labs/FLUX.1-dev"
CPU = (Hardware(name="cpu"),)


def model(name: str) -> ModelSpec:
    return Catalogue.load().find_model(name).spec


def run(name: str, hardware: tuple[Hardware, ...] = (), **fields: object) -> Footprint:
    given = {key: Given(value) for key, value in fields.items()}
    workload = InferenceWorkload(model=ModelRef(name=name), hardware=hardware, **given)  # type: ignore[arg-type]
    return inference_footprint(workload, model(name), None)


def train(name: str, **fields: object) -> Footprint:
    given = {key: Given(value) for key, value in fields.items()}
    workload = TrainingWorkload(model=ModelRef(name=name), **given)  # type: ignore[arg-type]
    return training_footprint(workload, model(name), None)


def gib(footprint: Footprint, figure: str = "device") -> float:
    return float(getattr(footprint, figure).expected) / GIB


def part(footprint: Footprint, name: str) -> float:
    return sum(p.bytes for p in footprint.parts if p.name == name)


def test_bge_large_on_a_cpu_is_fp32_weights_plus_runtime() -> None:
    """335 M parameters are 1.25 GiB in fp32; one text of 512 tokens adds little beside the interpreter."""
    found = run("BAAI/bge-large-en-v1.5", CPU, batch=1, context=512)
    assert part(found, "weights") == pytest.approx(335_141_888 * 4, rel=1e-6)
    assert 1.6 < gib(found) < 2.0
    assert found.cpu_bytes == pytest.approx(found.device.expected)


def test_int8_onnx_encoder_is_a_quarter_of_fp32_weights() -> None:
    """ONNX quantises the embedding as well, so int8 takes a quarter of the fp32 file."""
    full = run("BAAI/bge-base-en-v1.5", CPU, engine="onnxruntime", weights_format="fp32")
    small = run("BAAI/bge-base-en-v1.5", CPU, engine="onnxruntime", weights_format="int8")
    assert part(small, "weights") == pytest.approx(part(full, "weights") / 4, rel=0.01)


def test_eager_attention_costs_scores_of_length_squared() -> None:
    """Eager attention holds heads x length x length scores twice; with 4096 tokens they outweigh the MLP."""
    lean = run("answerdotai/ModernBERT-large", batch=1, context=4096, attention_impl="sdpa")
    heavy = run("answerdotai/ModernBERT-large", batch=1, context=4096, attention_impl="eager")
    scores = 2 * 16 * 4096 * 4096 * 2
    assert part(heavy, "activations") - part(lean, "activations") == pytest.approx(scores, rel=0.15)


def test_whisper_large_cross_attention_cache_is_234_mib_a_window() -> None:
    """32 decoder layers x keys and values x 1500 positions x 1280 values x 2 bytes is 234 MiB."""
    found = run("openai/whisper-large-v2", engine="faster-whisper", weights_format="fp16", batch=1)
    assert part(found, "cross_attention_cache") == 32 * 2 * 1500 * 1280 * 2
    eight = run("openai/whisper-large-v2", engine="faster-whisper", weights_format="fp16", batch=8)
    assert part(eight, "cross_attention_cache") == 8 * 32 * 2 * 1500 * 1280 * 2


def test_torch_whisper_copies_the_encoder_cache_for_every_beam() -> None:
    """The reference decoder repeats the audio for its five beams; CTranslate2 does not."""
    torch = run("openai/whisper-large-v2", engine="openai-whisper", weights_format="fp16", batch=1)
    ct2 = run("openai/whisper-large-v2", engine="faster-whisper", weights_format="fp16", batch=1)
    assert part(torch, "cross_attention_cache") == 5 * part(ct2, "cross_attention_cache")


def test_whisper_cpp_never_stores_more_than_16_bits() -> None:
    """An fp32 request to whisper.cpp gives a 16-bit model and says so."""
    found = run("openai/whisper-small", CPU, engine="whisper.cpp", weights_format="fp32")
    assert part(found, "weights") == pytest.approx(241_734_912 * 2, rel=1e-6)
    assert "media_engine_stores_16_bits" in [note.message for note in found.notes]


def test_translation_model_is_small_beside_its_runtime() -> None:
    """opus-mt has 74 M parameters: half a GiB of process on a CPU in int8, most of it no weights."""
    found = run("Helsinki-NLP/opus-mt-en-de", CPU, engine="ctranslate2", weights_format="int8")
    assert 0.4 < gib(found) < 0.65
    assert part(found, "weights") < 0.2 * found.device.expected


def test_sdxl_decode_in_fp32_sets_the_peak() -> None:
    """Three fp32 tensors of 256 channels at 1024 x 1024 are 3 GiB a picture; with four they outgrow the weights."""
    found = run(SDXL, engine="diffusers", weights_format="fp16", batch=4, image_size=1024)
    assert found.phase == "vae_decode"
    assert part(found, "activations") == pytest.approx(4 * 3 * GIB, rel=1e-6)


def test_slicing_decodes_one_picture_at_a_time() -> None:
    """VAE slicing divides the decoder's activations by the batch and leaves the rest."""
    whole = run(SDXL, weights_format="fp16", batch=4, image_size=1024)
    sliced = run(SDXL, weights_format="fp16", batch=4, image_size=1024, vae_slicing=True)
    assert part(sliced, "activations") == pytest.approx(part(whole, "activations") / 4)
    assert sliced.device.expected < whole.device.expected


def test_offload_leaves_the_part_at_work_and_counts_the_host() -> None:
    """Model offload keeps one component on the device; all weights lie in host memory."""
    found = run(SDXL, weights_format="fp16", offload="model_cpu", image_size=1024)
    assert found.cpu_bytes == pytest.approx(found.components["weights"])
    assert found.phases["denoise"] > 2_567_463_684 * 2
    assert found.phases["vae_decode"] > 83_653_863 * 2
    sequential = run(SDXL, weights_format="fp16", offload="sequential_cpu", image_size=1024)
    assert sequential.allocated.expected < found.allocated.expected


def test_flux_in_bf16_is_23_8_gb_of_transformer_and_9_5_of_t5() -> None:
    """Weights of Flux in bf16: 23.8 + 9.52 + 0.25 + 0.17 decimal GB."""
    found = run(FLUX, weights_format="bf16", batch=1)
    assert part(found, "weights_denoiser") == pytest.approx(23.8e9, rel=2e-3)
    assert part(found, "weights_text_encoders") == pytest.approx(9.52e9 + 0.25e9, rel=2e-3)


def test_quantising_the_transformer_alone_leaves_the_text_encoder() -> None:
    """A 4-bit Flux on an 8 GB card fails on its 16-bit text encoder, unless that is quantised too."""
    alone = run(FLUX, weights_format="nf4")
    both = run(FLUX, weights_format="nf4", text_encoder_format="quantised")
    assert part(alone, "weights_text_encoders") == pytest.approx(9.77e9, rel=5e-3)
    # T5's output projections (1.007 B parameters) stay in fp32 with this quantiser: 4.03 GB.
    assert part(both, "weights_text_encoders") == pytest.approx(4.03e9 + 3.62e9 * 4.5 / 8 + 0.26e9 + 0.25e9, rel=0.01)


def test_quantising_after_loading_peaks_with_both_copies() -> None:
    """torchao quantises weights that are on the device: the peak is the 16-bit pipeline whatever the format."""
    found = run(FLUX, engine="diffusers + torchao", weights_format="int8-wo", batch=1)
    assert found.phase == "quantise"
    assert 31.3 < gib(found, "allocated") < 32.0


def test_dit_tokens_follow_the_picture() -> None:
    """Flux sees one token for 16 x 16 pixels and 512 of text: 4608 at 1024 pixels."""
    found = run(FLUX, weights_format="bf16", offload="model_cpu", image_size=1024)
    assert found.phases["denoise"] - 11_901_408_320 * 2 == pytest.approx(4608 * 3072 * 17.3 * 2, rel=0.05)


def test_sdxl_lora_fits_a_12_gb_card() -> None:
    """Frozen bf16 UNet and text encoders, small adapters and recomputation: about 8 GiB at 1024 pixels."""
    found = train(
        SDXL, method="lora", weights_dtype="bf16", optimizer="adafactor", lora_rank=32, micro_batch=1, image_size=1024,
        checkpointing="full", framework="sd-scripts",
    )  # fmt: skip
    assert part(found, "weights") == pytest.approx(2_567_463_684 * 2)
    assert 6.5 < gib(found) < 11.0


def test_full_sdxl_training_fits_24_gb_with_adafactor_only() -> None:
    """Weights and gradients in fp32 are 19.1 GiB; two 8-bit moments more are too much for 24 GB."""
    fields = {"method": "full", "weights_dtype": "fp32", "mixed_precision": True, "micro_batch": 1, "image_size": 1024}
    lean = train(SDXL, optimizer="adafactor", framework="sd-scripts", checkpointing="full", **fields)
    adam = train(SDXL, optimizer="adamw_8bit", framework="sd-scripts", checkpointing="full", **fields)
    assert gib(lean) < 23.0
    assert gib(adam, "allocated") > 24.0
    assert part(adam, "optimizer") == pytest.approx(2_567_463_684 * 2 * 1.015625)


def test_clip_training_grows_with_the_batch_until_it_does_not_fit() -> None:
    """ViT-B/16 with 256 pairs takes some 26 GB; 512 do not fit 32 GB without recomputation, and do with it."""
    fields = {"method": "pretrain", "weights_dtype": "fp32", "mixed_precision": True, "image_size": 224}
    half = train("openai/clip-vit-base-patch16", micro_batch=256, checkpointing="none", **fields)
    whole = train("openai/clip-vit-base-patch16", micro_batch=512, checkpointing="none", **fields)
    light = train("openai/clip-vit-base-patch16", micro_batch=512, checkpointing="full", **fields)
    assert 23.0 < gib(half, "allocated") < 28.0
    assert gib(whole, "allocated") > 32.0
    assert gib(light) < 20.0


def test_detector_training_warns_that_boxes_count() -> None:
    """Label assignment grows with boxes, which nobody states: the footprint says so."""
    found = train("yolov8s", micro_batch=16, image_size=640)
    assert "media_boxes_grow_training" in [note.message for note in found.notes]
    assert 3.0 < gib(found) < 7.0


def test_video_frames_set_the_denoisers_tokens() -> None:
    """49 frames of 720 x 480 are 13 latent steps of 45 x 30 tokens, and two samples for guidance."""
    found = run("THUDM/CogVideoX-5b", weights_format="bf16", offload="model_cpu", frames=49, image_size=480)
    activations = found.phases["denoise"] - 5_570_283_072 * 2
    assert activations == pytest.approx(2 * (13 * 45 * 30 + 226) * 3072 * 12.1 * 2, rel=0.1)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("logistic regression", "linear or logistic regression"),
        ("a random forest with 500 trees", "random forest"),
        ("entrenar un árbol de decisión", "decision tree"),
        ("XGBoost", "gradient-boosted trees"),
        ("small MLP", "small neural network"),
    ],
)
def test_classical_kinds_are_recognised_in_both_languages(text: str, kind: str) -> None:
    """A classical model is recognised by the words people use."""
    assert recognise_classical(text) == kind
    assert classical_spec(text).domain == "classical"


def test_classical_models_take_kilobytes_to_megabytes_beside_the_interpreter() -> None:
    """Every classical model answers with a CPU process of well below a few GiB, and a model far below it."""
    for kind in classical_kinds():
        spec = classical_spec(kind)
        workload = InferenceWorkload(model=ModelRef(name=kind), hardware=CPU)
        found = inference_footprint(workload, spec, None)
        assert found.device.expected < 0.5 * GIB
        assert part(found, "weights") < 100e6


def test_classical_training_holds_copies_of_the_data() -> None:
    """A million rows of 50 features in 8 bytes, twice, are 0.8 GB; without the size there is no answer."""
    spec = classical_spec("random forest")
    sized = TrainingWorkload(model=ModelRef(name="random forest"), dataset_samples=Given(1e6))
    assert part(training_footprint(sized, spec, None), "data") == pytest.approx(1e6 * 50 * 8 * 2)
    with pytest.raises(UnsupportedWorkload):
        training_footprint(TrainingWorkload(model=ModelRef(name="random forest")), spec, None)


def test_unknown_classical_names_are_refused() -> None:
    """A text that names no classical model is refused with a message id."""
    with pytest.raises(UnsupportedWorkload) as caught:
        classical_spec("llama")
    assert caught.value.message_id == "media_unknown_classical"


def test_totals_answer_the_statistic_asked_or_the_engines_own() -> None:
    """nvidia-smi means the device's figure; diffusers reports allocated memory where nothing is said."""
    found = run(FLUX, weights_format="bf16")
    assert media_total_bytes(found, "nvidia-smi", "diffusers") == found.device
    assert media_total_bytes(found, "reserved", "diffusers") == found.reserved
    assert media_total_bytes(found, None, "diffusers") == found.allocated
    assert media_total_bytes(found, None, "faster-whisper") == found.device


def test_an_unknown_format_is_refused_by_name() -> None:
    """A weights format that nobody knows is refused, not guessed."""
    with pytest.raises(UnsupportedWorkload) as caught:
        run("BAAI/bge-base-en-v1.5", weights_format="sixbit")
    assert caught.value.params["format"] == "sixbit"


def test_offload_moves_text_encoders_one_at_a_time() -> None:
    """With model offload the prompt phase holds the largest encoder (T5, 9.52 GB), not all three."""
    found = run("stabilityai/stable-diffusion-3-medium-diffusers", weights_format="fp16", offload="model_cpu")
    assert found.phases["text_encode"] == pytest.approx(4_762_310_656 * 2, rel=0.01)


def test_the_fp32_workspace_gives_way_on_a_small_card() -> None:
    """SDXL takes GiBs of scratch memory where they are free; the low end is a run that does without them."""
    found = run(SDXL, weights_format="fp16", batch=1, image_size=1024)
    assert "media_workspace_gives_way" in [note.message for note in found.notes]
    # 6.46 GiB of weights, the decoder raised to fp32, 3 GiB of activations and one copy of a tensor: 10.6 GiB.
    assert found.allocated.expected - found.components["gives_way"] == pytest.approx(10.6 * GIB, rel=0.02)
    assert found.allocated.low <= 10.7 * GIB


@pytest.mark.parametrize(("name", "kept_mib"), [("timm/resnet101", 120.4), ("timm/vgg16", 69.2), ("yolov5m", 601.4)])
def test_convolutional_networks_keep_what_was_counted(name: str, kept_mib: float) -> None:
    """In fp32 a network keeps the counted MiB an image (at its native size) for the backward pass."""
    edge = 640 if "yolo" in name else 224
    found = train(
        name, weights_dtype="fp32", mixed_precision=False, compute_dtype="fp32", micro_batch=8, image_size=edge
    )
    assert part(found, "activations") / 8 / 2**20 == pytest.approx(kept_mib, rel=0.12)
