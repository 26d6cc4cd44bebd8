// Under torch.autocast an operator's maps are cast to the lower type, as those of LibTorch's convolutions
// are. Weights, biases and embeddings stay as they are given: every operator takes float32 ones beside 16-bit
// maps, and loses less with them. Regions and boxes are not maps.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string>

namespace saccade::kernels {
namespace {

// The operators with maps of one resolution, by their schemas' argument names.
bool IsAutocastMap(const std::string& argument) {
  return argument == "x" || argument == "q" || argument == "k" || argument == "v";
}

// Casts the maps among the arguments, and calls the operator without autocast.
template <c10::DeviceType kDevice>
void AutocastMaps(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(
      at::autocast::get_autocast_dispatch_key_from_device_type(kDevice));
  const at::ScalarType type = at::autocast::get_autocast_dtype(kDevice);
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  // The CPU's kernels do not take float16.
  const bool is_taken = kDevice != c10::DeviceType::CPU || type == at::kBFloat16;
  for (size_t i = 0; i < arguments.size() && is_taken; ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (!IsAutocastMap(arguments[i].name()) || !value.isTensor()) continue;
    value = at::autocast::cached_cast(type, value.toTensor(), kDevice);
  }
  op.callBoxed(stack);
}

template <c10::DeviceType kDevice>
void RegisterAutocast(torch::Library& m) {
  for (const char* op : {"attention", "attention_1n", "attention_module", "efficient_attention",
                         "efficient_attention_module", "expatt", "expatt_module", "gsa", "gsa_module",
                         "kao_kv", "kao_qkv", "kao_module", "sao", "sao_module"}) {
    m.impl(op, torch::CppFunction::makeFromBoxedFunction<&AutocastMaps<kDevice>>());
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, AutocastCPU, m) { RegisterAutocast<c10::DeviceType::CPU>(m); }
TORCH_LIBRARY_IMPL(saccade, AutocastCUDA, m) { RegisterAutocast<c10::DeviceType::CUDA>(m); }

}  // namespace saccade::kernels
