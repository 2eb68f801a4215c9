#include "tests/fuzz/tensor_sweep.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;
using Header = json::object;

constexpr std::size_t kFirstNumbers = 9;

template <std::size_t N>
auto setTypes(std::array<const char*, N> types) {
  std::vector<std::function<void(Header&, const std::string&)>> all;
  for (const char* const type : types)
    all.push_back(
        [type](Header& header, const std::string& name) { header[name].get_object()["dtype"] = type; });
  return all;
}

/// Changes of a tensor's description.
const auto& descriptions() {
  static const auto all = [] {
    auto made = setTypes(std::array{"F32", "F64", "I64", "U8"});
    for (const json::array& shape :
         {json::array{}, json::array{0}, json::array{1}, json::array{2}, json::array{3}, json::array{2, 2},
          json::array{1, 48}, json::array{3, 48}, json::array{100}})
      made.push_back(
          [shape](Header& header, const std::string& name) { header[name].get_object()["shape"] = shape; });
    made.push_back([](Header& header, const std::string& name) { header.erase(name); });
    made.push_back([](Header& header, const std::string& name) {
      header[name + " "] = header[name];
      header.erase(name);
    });
    return made;
  }();
  return all;
}

}  // namespace

TensorSweep::TensorSweep(std::vector<Container> files) : files_(std::move(files)) {
  std::set<std::vector<std::string>> seen;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    const auto names = files_[f].tensors("");
    if (seen.insert(names).second)
      for (const auto& name : names) add(f, name);
  }
}

void TensorSweep::add(std::size_t file, const std::string& tensor) {
  for (std::size_t d = 0; d < descriptions().size(); ++d) changes_.push_back({file, tensor, std::nullopt, d});
  const auto numbers = files_[file].numbers(tensor);
  const std::size_t first = numbers.size() <= 2 * kFirstNumbers ? kFirstNumbers : 1;
  for (std::size_t e = 0; e < numbers.size(); ++e)
    if (e < first || e + 1 == numbers.size())
      for (std::size_t n = 0; n < numbers.hostile(); ++n) changes_.push_back({file, tensor, e, n});
}

Container TensorSweep::at(std::size_t number) const {
  const Change& change = changes_[number];
  Container file = files_[change.file];
  if (change.element) {
    file.numbers(change.tensor).set(*change.element, change.choice);
  } else {
    descriptions()[change.choice](file.header, change.tensor);
    file.settleOffsets();
  }
  return file;
}

}  // namespace muster::fuzz
