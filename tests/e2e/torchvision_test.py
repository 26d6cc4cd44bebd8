"""Serves torchvision's networks by torchvision's names, and compares the answers with torchvision's own, from the encoded
picture on: a state_dict as it is, and a configuration that names the architecture alone."""

import io
import subprocess

import PIL.Image
import pytest
import torch
from torchvision.models import get_model, get_model_weights
from torchvision.transforms import functional

from harness import Daemon, binary, run_to_end
from messages import get_model_request, predict_request
from models.reference.served import settle
from pictures import encoded

torch.set_num_threads(1)

# Narrow in classes only, because torchvision's names fix the rest.
NETWORKS = ["resnet18", "resnet50", "mobilenet_v2"]
CLASSES = 12
SIZES = [(301, 467), (640, 363), (232, 232), (97, 151)]


def picture(height, width, seed):
    """Smooth shapes and fine noise: what a resize makes of them depends on its filter."""
    chance = torch.Generator().manual_seed(seed)
    coarse = 255 * torch.rand(1, 3, height // 24 + 2, width // 24 + 2, generator=chance)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0]
    noisy = smooth + 12 * torch.randn(smooth.shape, generator=chance)
    return noisy.clamp(0, 255).byte().permute(1, 2, 0).numpy()


def decoded(file):
    """As a float tensor [3, height, width] of values from 0 to 1."""
    return functional.to_tensor(PIL.Image.open(io.BytesIO(file)))


def write(root, name, network, architecture, **options):
    folder = root / name
    (folder / "1").mkdir(parents=True)
    torch.save(network.state_dict(), folder / "1" / "weights.pt")
    parameters = {"architecture": architecture, "classes": CLASSES, **options}
    lines = [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()]
    (folder / "config.pbtxt").write_text("\n".join(['backend: "saccade"', "max_batch_size: 4", *lines]) + "\n")


@pytest.fixture(scope="module")
def networks():
    made = {}
    for name in NETWORKS:
        torch.manual_seed(5)
        network = get_model(name, weights=None, num_classes=CLASSES)
        batch = torch.stack([decoded(encoded(picture(224, 224, seed))) for seed in range(4)])
        made[name] = settle(network, [(batch - 0.45) / 0.225])
    return made


@pytest.fixture(scope="module")
def daemon(networks, tmp_path_factory):
    root = tmp_path_factory.mktemp("torchvision")
    for name, network in networks.items():
        write(root / "models", name, network, name)
    write(root / "models", "first_weights", networks["resnet50"], "resnet50", resize_size=256)
    write(root / "models", "own", networks["resnet18"], "resnet18", resize_size=150, crop_size=128,
          interpolation="bicubic", mean="0.5,0.4,0.3", std="0.25,0.5,0.2")
    write(root / "models", "reduced", networks["resnet18"], "resnet18", reduced_jpeg="true")
    with Daemon(root / "models", log_folder=root) as running:
        yield running.await_ready()


def served(daemon, model, file):
    request = predict_request(model=model, encoded=file, classification={"top_k": CLASSES})
    with daemon.vision() as vision:
        answer = vision.predict(request)
    logits = {found.index: found.logit for found in answer.classification.classes}
    return torch.tensor([logits[index] for index in range(CLASSES)])


def agree(found, expected):
    return (found - expected).abs().max() / expected.abs().max()


def preset(name, version="DEFAULT"):
    return get_model_weights(name)[version].transforms()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("height, width", SIZES)
def test_logits_are_torchvisions_after_its_own_transforms(daemon, networks, name, height, width):
    file = encoded(picture(height, width, seed=height))
    with torch.inference_mode():
        expected = networks[name](preset(name)(decoded(file))[None])[0]
    assert agree(served(daemon, name, file), expected) < 1e-3


def test_the_first_weights_are_an_option(daemon, networks):
    file = encoded(picture(301, 467, seed=1))
    with torch.inference_mode():
        first = networks["resnet50"](preset("resnet50", "IMAGENET1K_V1")(decoded(file))[None])[0]
    assert agree(served(daemon, "first_weights", file), first) < 1e-3
    # The comparison would notice 232 in place of 256.
    assert agree(served(daemon, "resnet50", file), first) > 5e-3


def test_every_option_of_preparing_is_torchvisions(daemon, networks):
    file = encoded(picture(301, 467, seed=2))
    resized = functional.resize(decoded(file), [150], functional.InterpolationMode.BICUBIC, antialias=True)
    pixels = functional.center_crop(resized.clamp(0, 1), [128, 128])
    pixels = functional.normalize(pixels, [0.5, 0.4, 0.3], [0.25, 0.5, 0.2])
    with torch.inference_mode():
        expected = networks["resnet18"](pixels[None])[0]
    assert agree(served(daemon, "own", file), expected) < 1e-3


def test_a_large_jpeg_is_reduced_only_on_request(daemon, networks):
    file = encoded(picture(1400, 1900, seed=3), "JPEG", quality=92)
    with torch.inference_mode():
        expected = networks["resnet18"](preset("resnet18")(decoded(file))[None])[0]
    assert agree(served(daemon, "resnet18", file), expected) < 1e-3
    assert agree(served(daemon, "reduced", file), expected) > 1e-3


def test_every_default_is_that_of_torchvisions_weights(daemon):
    with daemon.vision() as vision:
        for name in NETWORKS:
            options = vision.get_model(get_model_request(name)).options
            of_weights = preset(name)
            assert [int(options["resize_size"])] == of_weights.resize_size
            assert [int(options["crop_size"])] == of_weights.crop_size
            assert options["interpolation"] == of_weights.interpolation.value
            assert [float(value) for value in options["mean"].split(",")] == of_weights.mean
            assert [float(value) for value in options["std"].split(",")] == of_weights.std


def test_init_makes_a_folder_that_is_served_alike(networks, tmp_path):
    """The names of a wrapped network are passed over, and the number of classes is found."""
    wrapped = torch.nn.ModuleDict({"model": networks["mobilenet_v2"]})
    torch.save(wrapped.state_dict(), tmp_path / "mine.pt")
    (tmp_path / "labels").write_text("".join(f"thing {at}\n" for at in range(CLASSES)))
    command = [binary("saccade").resolve(), "init", "mine.pt", "-o", "models/mine", "--labels", "labels"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"of mobilenet_v2 with {CLASSES} classes" in made.stdout and "prefix 'model.'" in made.stdout
    checked = run_to_end("--check-config", f"--model-repository={tmp_path / 'models'}")
    assert checked.returncode == 0 and "OK      mine version 1 (mobilenet_v2)" in checked.stdout, checked.stdout
    file = encoded(picture(301, 467, seed=4))
    with torch.inference_mode():
        expected = networks["mobilenet_v2"](preset("mobilenet_v2")(decoded(file))[None])[0]
    with Daemon(tmp_path / "models", log_folder=tmp_path) as running:
        assert agree(served(running.await_ready(), "mine", file), expected) < 1e-3


def test_init_tells_old_pickles_from_safetensors(networks, tmp_path):
    """As PyTorch before 1.6 wrote them."""
    torch.save(networks["resnet18"].state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    command = [binary("saccade").resolve(), "init", "old.pth", "-o", "models/old"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "old.pth is a state_dict of resnet18" in made.stdout
    checked = run_to_end("--check-config", f"--model-repository={tmp_path / 'models'}")
    assert "OK      old version 1 (resnet18)" in checked.stdout, checked.stdout


def test_a_program_among_weights_is_told_apart(networks, tmp_path):
    folder = tmp_path / "models" / "mine" / "1"
    folder.mkdir(parents=True)
    torch.jit.script(networks["resnet18"]).save(folder / "weights.pt")
    (folder.parent / "config.pbtxt").write_text(
        'backend: "saccade"\nparameters { key: "architecture" value { string_value: "resnet18" } }\n')
    checked = run_to_end("--check-config", f"--model-repository={tmp_path / 'models'}")
    assert checked.returncode == 1 and "this is a TorchScript program" in checked.stdout, checked.stdout
    command = [binary("saccade"), "init", folder / "weights.pt", "-o", tmp_path / "models" / "program"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "is a TorchScript program" in made.stdout
    assert (tmp_path / "models" / "program" / "1" / "model.pt").exists()


def test_how_far_pillows_resize_is_from_a_tensors():
    """docs/api.md states these differences."""
    worst, means = 0, []
    for seed, (height, width) in enumerate(SIZES * 3):
        pixels = picture(height, width, seed)
        ours = functional.resize(255 * functional.to_tensor(pixels), [232], antialias=True)
        pillows = functional.pil_to_tensor(functional.resize(PIL.Image.fromarray(pixels), [232])).float()
        difference = (ours - pillows).abs()
        worst, means = max(worst, float(difference.max())), [*means, float(difference.mean())]
    assert worst <= 1.1 and max(means) <= 0.35, (worst, max(means))
