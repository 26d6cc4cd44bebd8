"""What the machine code of all kernels must be like. Efficient attention's tiled kernels have closer bounds in a test of
their own."""

import re

import pytest

from kernels.common import sass

ARCH = "sm_90"
# Kernels that keep some values in local memory, with the number of instructions that access it.
SPILLING = {"AttendKernelIfLi4E": 80, "RoiAlignKernelIfE": 4}
# Kernels whose products must run on the tensor cores for 16-bit maps.
PRODUCTS = ("AttendKernel", "AttendProductKernel", "EaGatherKernel", "EaApplyKernel", "EaWideLogitsKernel",
            "EaWideGatherKernel", "EaWideApplyKernel", "ExpattDirectKernel", "GsaAxisKernel", "GsaProjectKernel")
MAX_PER_HMMA = 3
# The products of a wide map's apply have 64 terms, and each is followed by its epilogue.
MAX_PER_HMMA_OF = {"EaWideApplyKernel": 3.5}
# The share of a kernel's tensor-core instructions that follow another one of the same product. The products of global
# self-attention's axes are small, with softmaxes between them.
MIN_IN_PRODUCTS = {"GsaAxisKernel": 0.5}
# Kernels that read a map, or their operands, in 16 bytes where its layout and alignment allow it.
VECTORS = ("AttendKernel", "AttendProductKernel", "EaGatherKernel", "EaApplyKernel", "EaFoldKernel", "EaFloatGatherKernel",
           "EaFloatApplyKernel", "EaWideLogitsKernel", "EaWideGatherKernel", "EaWideApplyKernel",
           "EaWideFloatLogitsKernel", "EaWideFloatGatherKernel", "EaWideFloatApplyKernel", "GsaAxisKernel",
           "GsaContextKernel", "GsaProjectKernel", "RoiAlignKernel", "SaoApplyKernel", "SaoReduceKernel")
# Threads of a block, and the blocks that share a multiprocessor, which has 65,536 registers.
BLOCKS = {"AttendKernel": (256, 2), "AttendProductKernel": (256, 2), "EaGatherKernel": (128, 2), "EaApplyKernel": (128, 2),
          "EaFloatGatherKernel": (256, 1), "EaFloatApplyKernel": (256, 1), "EaWideLogitsKernel": (128, 2),
          "EaWideGatherKernel": (128, 2), "EaWideApplyKernel": (128, 2), "EaWideFloatLogitsKernel": (256, 2),
          "EaWideFloatGatherKernel": (256, 1), "EaWideFloatApplyKernel": (256, 1), "ExpattDirectKernel": (256, 2),
          "GsaContextKernel": (256, 2), "GsaProjectKernel": (256, 2)}
REGISTERS = 65536


def short(name):
    """The name of a kernel without its namespaces, with its mangled template arguments."""
    return re.search(r"saccade7kernels\d+(\w+)", name)[1]


def called(kernel, name):
    return re.match(rf"{kernel}(?![a-zA-Z]*Kernel)", short(name)) is not None


@pytest.fixture(scope="module")
def kernels():
    return {name: opcodes for name, opcodes in sass.opcodes_of_kernels(ARCH).items() if "saccade7kernels" in name}


def of(kernels, kernel):
    found = {name: opcodes for name, opcodes in kernels.items() if called(kernel, name)}
    assert found, f"the plugin has no {kernel} for {ARCH}"
    return found


def test_sums_stay_in_registers(kernels):
    assert len(kernels) > 100
    for name, opcodes in kernels.items():
        allowed = max((bound for start, bound in SPILLING.items() if short(name).startswith(start)), default=0)
        accesses = sass.count(opcodes, "LDL") + sass.count(opcodes, "STL")
        assert accesses <= allowed, f"{short(name)} accesses local memory at {accesses} places; expected at most {allowed}"


@pytest.mark.parametrize("kernel", VECTORS)
def test_operands_are_read_in_16_bytes(kernels, kernel):
    for name, opcodes in of(kernels, kernel).items():
        wide = sum(opcode.startswith(("LDG", "LDGSTS")) and opcode.endswith((".128", ".128.CONSTANT")) for opcode in opcodes)
        assert wide > 0, f"{short(name)} has no 16-byte load from global memory"


def test_stored_maps_are_read_and_written_in_16_bytes(kernels):
    """Both types, each with maps of it or of float32 before and after the product."""
    readers = {name: opcodes for name, opcodes in of(kernels, "ExpattDirectKernel").items() if "ExpattSourceE2" in name}
    assert len(readers) == 8
    for name, opcodes in readers.items():
        assert sum(opcode.startswith("LDG.E.128") for opcode in opcodes) >= 2, f"{short(name)} reads no whole fragments"
    for name, opcodes in of(kernels, "ExpattMapKernel").items():
        assert sass.count(opcodes, "STG.E.128") >= 2, f"{short(name)} writes no whole fragments"


@pytest.mark.parametrize("kernel", PRODUCTS)
def test_16_bit_products_run_on_the_tensor_cores(kernels, kernel):
    products = 0
    for name, opcodes in of(kernels, kernel).items():
        arguments = short(name).removeprefix(kernel)
        sixteen_bits = arguments.startswith(("I6__half", "I13__nv_bfloat16"))
        if not sixteen_bits:
            assert sass.count(opcodes, "HMMA") == 0, f"{short(name)} rounds float32 maps to 16 bits"
            continue
        gaps = sass.gaps_of_products(opcodes)
        assert len(gaps) >= 4, f"{short(name)} has {len(gaps)} neighbouring tensor-core instructions"
        ratio = sum(gaps) / len(gaps)
        assert ratio <= MAX_PER_HMMA_OF.get(kernel, MAX_PER_HMMA), f"{short(name)}: {ratio:.2f} instructions for each tensor-core instruction"
        share = len(gaps) / len(sass.distances_of_products(opcodes))
        assert share >= MIN_IN_PRODUCTS.get(kernel, 0.9), f"{short(name)}: {share:.2f} of the tensor-core instructions are near another one"
        products += 1
    assert products >= 2, "one for bfloat16 and one for float16"


@pytest.mark.parametrize("kernel", BLOCKS)
def test_registers_leave_room_for_the_blocks_of_a_multiprocessor(kernels, kernel):
    threads, blocks = BLOCKS[kernel]
    registers = sass.registers_of_kernels(ARCH)
    for name in of(kernels, kernel):
        # Registers are given to a thread by eights.
        taken = (registers[name] + 7) // 8 * 8 * threads * blocks
        assert taken <= REGISTERS, f"{short(name)}: {blocks} blocks need {taken} registers"
