#include "models/weights/format/pickle.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMaxPickleBytes = size_t{64} << 20;
constexpr size_t kMaxValues = 2'000'000;

constexpr std::string_view kOrderedDict = "collections\nOrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils\n_rebuild_tensor_v2";
constexpr std::string_view kOldRebuildTensor = "torch._utils\n_rebuild_tensor";  // before PyTorch 0.4
constexpr std::string_view kRebuildParameter = "torch._utils\n_rebuild_parameter";

// Globals are written as "module\nname", as in the stream.
std::optional<ElementType> StorageType(std::string_view global) {
  constexpr std::string_view kTorch = "torch\n";
  if (!global.starts_with(kTorch)) return std::nullopt;
  for (const ElementTypeInfo& info : ElementTypes()) {
    if (info.torch_storage != nullptr && global.substr(kTorch.size()) == info.torch_storage) return info.type;
  }
  return std::nullopt;
}

class Machine {
 public:
  explicit Machine(Bytes pickle) : input_(pickle) {}

  Pickle Run() {
    while (!Step(Next())) {
    }
    if (stack_.size() != 1) Fail("the stream leaves values on the stack, or none");
    return {std::move(values_), stack_.front()};
  }

  // The bytes behind the pickle's end. REQUIRES: Run() has returned.
  Bytes Rest() const { return input_.subspan(position_); }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw LoadError("state_dict: pickle at byte " + std::to_string(position_) + ": " + message);
  }

  // --- Input.

  uint8_t Next() {
    if (position_ == input_.size()) Fail("unexpected end. The file was cut short");
    return std::to_integer<uint8_t>(input_[position_++]);
  }

  uint64_t Little(int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= uint64_t{Next()} << (8 * i);
    return value;
  }

  std::string_view Take(uint64_t size) {
    if (size > input_.size() - position_) Fail("a string reaches beyond the end. The file was cut short");
    const std::string_view text(reinterpret_cast<const char*>(input_.data() + position_), size);
    position_ += size;
    return text;
  }

  // Reads two lines; returns them without the last line break.
  std::string_view TakeGlobal() {
    const size_t begin = position_;
    for (int lines = 0; lines < 2;) {
      if (Next() == '\n') ++lines;
    }
    return {reinterpret_cast<const char*>(input_.data() + begin), position_ - begin - 1};
  }

  // --- Values, stack and memo.

  void Push(PickleValue value) {
    if (values_.size() == kMaxValues) Fail("it has more than " + std::to_string(kMaxValues) + " values");
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<uint32_t>(values_.size() - 1));
  }

  void Push(Kind kind, int64_t integer = 0) {
    PickleValue value;
    value.kind = kind;
    value.integer = integer;
    Push(std::move(value));
  }

  void PushText(Kind kind, std::string_view text) {
    PickleValue value;
    value.kind = kind;
    value.text = text;
    Push(std::move(value));
  }

  void PushTuple(std::vector<uint32_t> items) {
    PickleValue value;
    value.kind = Kind::kTuple;
    value.items = std::move(items);
    Push(std::move(value));
  }

  uint32_t Pop() {
    if (stack_.empty()) Fail("the stack is empty");
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }

  std::vector<uint32_t> PopMany(size_t count) {
    if (stack_.size() < count) Fail("the stack is empty");
    std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  std::vector<uint32_t> PopToMark() {
    if (marks_.empty() || marks_.back() > stack_.size()) Fail("the stack has no mark");
    std::vector<uint32_t> items = PopMany(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  PickleValue& Top(Kind kind, const char* what) {
    if (stack_.empty() || values_[stack_.back()].kind != kind) Fail(std::string("expected ") + what);
    return values_[stack_.back()];
  }

  const PickleValue& Expect(uint32_t index, Kind kind, const char* what) const {
    if (values_[index].kind != kind) Fail(std::string("expected ") + what);
    return values_[index];
  }

  void Memoize(uint64_t slot) {
    if (stack_.empty()) Fail("the stack is empty");
    if (memo_.size() == kMaxValues && memo_.count(slot) == 0)
      Fail("its memo has more than " + std::to_string(kMaxValues) + " entries");
    memo_[slot] = stack_.back();
  }

  void Recall(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) Fail("the memo has no entry " + std::to_string(slot));
    // An opcode that makes no value still grows the stack, so the same bound applies.
    if (stack_.size() >= kMaxValues) Fail("the stack is too deep");
    stack_.push_back(found->second);
  }

  void Extend(Kind kind, const std::vector<uint32_t>& items) {
    PickleValue& container = Top(kind, kind == Kind::kDict ? "a dict to fill" : "a list to fill");
    if (kind == Kind::kDict && items.size() % 2 != 0) Fail("a dict's key has no value");
    container.items.insert(container.items.end(), items.begin(), items.end());
  }

  // --- Elements of a state_dict.

  void Global() {
    const std::string_view global = TakeGlobal();
    const bool known = global == kOrderedDict || global == kRebuildTensor || global == kOldRebuildTensor ||
                       global == kRebuildParameter;
    if (known || StorageType(global)) return PushText(Kind::kGlobal, global);
    std::string name(global);
    name[name.find('\n')] = '.';
    Fail("it refers to the Python object " + Quote(name) +
         ", which a state_dict of plain tensors does not need. Code in weights files is never executed: "
         "save "
         "model.state_dict() alone, or safetensors");
  }

  void PersistentId() {
    const PickleValue& id = Expect(Pop(), Kind::kTuple, "a tuple that names a storage");
    const std::string what = "('storage', class, key, device, size)";
    if (id.items.size() != 5 && id.items.size() != 6) Fail("expected " + what);
    if (id.items.size() == 6 && values_[id.items[5]].kind != Kind::kNone) {
      Fail(
          "a storage that is a view of another is not supported; load the file in PyTorch and save it again");
    }
    if (Expect(id.items[0], Kind::kString, "'storage'").text != "storage") Fail("expected " + what);
    const std::string_view global = Expect(id.items[1], Kind::kGlobal, "a storage class").text;
    const std::optional<ElementType> type = StorageType(global);
    if (!type) Fail("expected a storage class");
    PickleValue storage;
    storage.kind = Kind::kStorage;
    storage.type = *type;
    storage.text = Expect(id.items[2], Kind::kString, "a storage's key").text;
    storage.extent = Expect(id.items[4], Kind::kInt, "a storage's size").integer;
    if (storage.extent < 0) Fail("a storage's size is negative");
    Push(std::move(storage));
  }

  std::vector<int64_t> Numbers(uint32_t index, const char* what) const {
    const PickleValue& tuple = Expect(index, Kind::kTuple, what);
    if (tuple.items.size() > kMaxDimensions) Fail(std::string(what) + " has more than 16 numbers");
    std::vector<int64_t> numbers;
    for (const uint32_t item : tuple.items) {
      numbers.push_back(Expect(item, Kind::kInt, what).integer);
      if (numbers.back() < 0) Fail(std::string(what) + " has a negative number");
    }
    return numbers;
  }

  // `arguments` begin with storage, offset, shape and strides.
  void RebuildTensor(const std::vector<uint32_t>& arguments) {
    PickleValue tensor;
    tensor.kind = Kind::kTensor;
    Expect(arguments[0], Kind::kStorage, "a tensor's storage");
    tensor.storage = arguments[0];
    tensor.extent = Expect(arguments[1], Kind::kInt, "a tensor's offset").integer;
    tensor.shape = Numbers(arguments[2], "a tensor's shape");
    tensor.strides = Numbers(arguments[3], "a tensor's strides");
    if (tensor.extent < 0) Fail("a tensor's offset is negative");
    if (tensor.shape.size() != tensor.strides.size())
      Fail("a tensor has more strides than dimensions, or fewer");
    Push(std::move(tensor));
  }

  // Python 2 makes an OrderedDict from a list of pairs.
  void MakeDict(uint32_t list) {
    PickleValue dict;
    dict.kind = Kind::kDict;
    const std::vector<uint32_t>& pairs = Expect(list, Kind::kList, "a list of pairs").items;
    // One long list may be copied by many short calls.
    pairs_copied_ += pairs.size();
    if (pairs_copied_ > kMaxValues) Fail("it has more than " + std::to_string(kMaxValues) + " values");
    for (const uint32_t item : pairs) {
      const PickleValue& pair = values_[item];
      if ((pair.kind != Kind::kList && pair.kind != Kind::kTuple) || pair.items.size() != 2)
        Fail("expected a list of pairs");
      dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
    }
    Push(std::move(dict));
  }

  void Reduce() {
    const uint32_t arguments_index = Pop();
    const std::vector<uint32_t> arguments =
        Expect(arguments_index, Kind::kTuple, "a tuple of arguments").items;
    const std::string_view function = Expect(Pop(), Kind::kGlobal, "a known function").text;
    if (function == kOrderedDict && arguments.empty()) {
      Push(Kind::kDict);
    } else if (function == kOrderedDict && arguments.size() == 1) {
      MakeDict(arguments[0]);
    } else if (function == kRebuildTensor && (arguments.size() == 6 || arguments.size() == 7)) {
      RebuildTensor(arguments);
    } else if (function == kOldRebuildTensor && arguments.size() == 4) {
      RebuildTensor(arguments);
    } else if (function == kRebuildParameter && arguments.size() == 3) {
      Expect(arguments[0], Kind::kTensor, "a parameter's tensor");
      stack_.push_back(arguments[0]);
    } else {
      Fail("a call of " + Quote(function) + " with " + std::to_string(arguments.size()) +
           " arguments is not supported");
    }
  }

  void Long(uint64_t size) {
    if (size > 8) Fail("a number does not fit in 64 bits");
    uint64_t value = 0;
    for (uint64_t i = 0; i < size; ++i) value |= uint64_t{Next()} << (8 * i);
    if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) value |= ~uint64_t{0} << (8 * size);
    Push(Kind::kInt, static_cast<int64_t>(value));
  }

  // Executes one opcode. Returns true at the end of the stream.
  bool Step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const uint8_t version = Next(); version != 2) {
          Fail("protocol " + std::to_string(version) + "; expected 2, the default of torch.save");
        }
        break;
      case '.':
        return true;
      case '(':
        if (marks_.size() == kMaxValues) Fail("it has more than " + std::to_string(kMaxValues) + " marks");
        marks_.push_back(stack_.size());
        break;
      case 'c':
        Global();
        break;
      case 'Q':
        PersistentId();
        break;
      case 'R':
        Reduce();
        break;
      case 'b':  // BUILD: a state_dict's _metadata, which is ignored
        Pop();
        Top(Kind::kDict, "a dict to give attributes to");
        break;
      case 'q':
        Memoize(Next());
        break;
      case 'r':
        Memoize(Little(4));
        break;
      case 'h':
        Recall(Next());
        break;
      case 'j':
        Recall(Little(4));
        break;
      default:
        if (!Container(opcode) && !Scalar(opcode))
          Fail("opcode " + std::to_string(opcode) + " is not supported in a state_dict");
    }
    return false;
  }

  bool Container(uint8_t opcode) {
    switch (opcode) {
      case '}':
        Push(Kind::kDict);
        return true;
      case ']':
        Push(Kind::kList);
        return true;
      case ')':
        PushTuple({});
        return true;
      case 't':
        PushTuple(PopToMark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        PushTuple(PopMany(opcode - 0x84U));
        return true;
      case 's':
        Extend(Kind::kDict, PopMany(2));
        return true;
      case 'u':
        Extend(Kind::kDict, PopToMark());
        return true;
      case 'a':
        Extend(Kind::kList, PopMany(1));
        return true;
      case 'e':
        Extend(Kind::kList, PopToMark());
        return true;
      default:
        return false;
    }
  }

  bool Scalar(uint8_t opcode) {
    switch (opcode) {
      case 'N':
        Push(Kind::kNone);
        return true;
      case 0x88:
        Push(Kind::kBool, 1);
        return true;
      case 0x89:
        Push(Kind::kBool, 0);
        return true;
      case 'K':
        Push(Kind::kInt, static_cast<int64_t>(Little(1)));
        return true;
      case 'M':
        Push(Kind::kInt, static_cast<int64_t>(Little(2)));
        return true;
      case 'J':
        Push(Kind::kInt, static_cast<int32_t>(Little(4)));
        return true;
      case 0x8a:
        Long(Next());
        return true;
      case 'G':  // BINFLOAT, big-endian: a learning rate in a checkpoint, for example; never a weight
        Take(8);
        Push(Kind::kFloat);
        return true;
      case 'X':
      case 'T':  // a string of Python 2
        PushText(Kind::kString, Take(Little(4)));
        return true;
      case 'U':
        PushText(Kind::kString, Take(Little(1)));
        return true;
      default:
        return false;
    }
  }

  Bytes input_;
  size_t position_ = 0;
  std::vector<PickleValue> values_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t pairs_copied_ = 0;  // by all calls of MakeDict()
};

}  // namespace

Pickle ReadPickle(Bytes pickle) {
  if (pickle.size() > kMaxPickleBytes) {
    throw LoadError("state_dict: its pickle has " + std::to_string(pickle.size()) + " bytes; at most " +
                    std::to_string(kMaxPickleBytes) + " are allowed");
  }
  Machine machine(pickle);
  Pickle read = machine.Run();
  if (!machine.Rest().empty()) throw LoadError("state_dict: its pickle has data after its end");
  return read;
}

Pickle ReadFirstPickle(Bytes& stream) {
  const size_t behind = stream.size() - std::min(stream.size(), kMaxPickleBytes);
  Machine machine(stream.first(stream.size() - behind));
  Pickle read = machine.Run();
  stream = stream.last(machine.Rest().size() + behind);
  return read;
}

}  // namespace saccade::models
