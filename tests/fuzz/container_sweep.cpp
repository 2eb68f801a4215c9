#include "tests/fuzz/container.h"

#include <boost/json/serialize.hpp>

#include "tests/fuzz/hostile_values.h"
#include "tests/fuzz/json_changes.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;
using Description = std::function<void(json::object& header, const std::string& tensor)>;

/// Changes of a tensor's description.
std::vector<Description> descriptions() {
  std::vector<Description> all;
  const auto addField = [&](const char* field, const json::value& value) {
    all.push_back(
        [=](json::object& header, const std::string& tensor) { header[tensor].get_object()[field] = value; });
  };
  for (const auto* const type : {"F32", "F64", "I64", "U8"}) addField("dtype", type);
  for (const json::array& shape :
       {json::array{}, json::array{0}, json::array{1}, json::array{2}, json::array{3}, json::array{2, 2},
        json::array{1, 48}, json::array{3, 48}, json::array{100}})
    addField("shape", shape);
  all.push_back([](json::object& header, const std::string& tensor) { header.erase(tensor); });
  all.push_back([](json::object& header, const std::string& tensor) {
    header[tensor + " "] = header[tensor];
    header.erase(tensor);
  });
  return all;
}

}  // namespace

Bytes withConfiguration(Container file, std::string_view text) {
  if (auto* const configuration = file.metadata("configuration")) *configuration = text;
  file.settleChecksums();
  return file.bytes();
}

Sweep headerSweep(const Container& file) {
  std::vector<Bytes> broken = foreignFiles();
  for (const auto& text : brokenJson()) {
    Container sums = file;
    sums.settleChecksums();
    if (auto* const value = sums.metadata("muster.crc32")) *value = text;
    const std::uint64_t length = text.size();
    broken.insert(broken.end(),
                  {withConfiguration(file, text), sums.bytes(),
                   bytesOf(std::string(reinterpret_cast<const char*>(&length), sizeof length) + text)});
  }
  const auto changes = std::make_shared<const JsonSweep>(std::vector<json::value>{file.header}, Vocabulary());
  const auto changed = [changes, data = file.data](std::size_t number) {
    const auto made = changes->at(number / 2).value;
    Container other{.header = made.is_object() ? made.get_object() : json::object(), .data = data};
    if (number % 2 == 0) other.settleOffsets();
    other.settleChecksums();
    return other.bytes();
  };
  return joined({sweepOf(std::move(broken)), {2 * changes->size(), changed}});
}

Sweep tensorSweep(std::vector<Container> files, void (*settle)(Container& file)) {
  constexpr std::size_t kFirstNumbers = 9;
  struct Change {
    std::size_t file;
    std::string tensor;
    std::optional<std::size_t> element;  // of its numbers; none: the tensor's description
    std::size_t choice;                  // which hostile number or description
  };
  static const auto kDescriptions = descriptions();
  std::vector<Change> changes;
  std::set<std::vector<std::string>> seen;
  for (std::size_t f = 0; f < files.size(); ++f) {
    const auto names = files[f].tensors("");
    if (!seen.insert(names).second) continue;
    for (const auto& name : names) {
      for (std::size_t d = 0; d < kDescriptions.size(); ++d) changes.push_back({f, name, std::nullopt, d});
      const auto numbers = files[f].numbers(name);
      const std::size_t first = numbers.size() <= 2 * kFirstNumbers ? kFirstNumbers : 1;
      for (std::size_t e = 0; e < numbers.size(); ++e)
        if (e < first || e + 1 == numbers.size())
          for (std::size_t n = 0; n < numbers.hostile(); ++n) changes.push_back({f, name, e, n});
    }
  }
  const auto size = changes.size();
  return {size, [all = std::move(files), changes = std::move(changes), settle](std::size_t number) {
            const auto& [from, tensor, element, choice] = changes[number];
            Container file = all[from];
            if (element) {
              file.numbers(tensor).set(*element, choice);
            } else {
              kDescriptions[choice](file.header, tensor);
              file.settleOffsets();
            }
            settle(file);
            file.settleChecksums();
            return file.bytes();
          }};
}

}  // namespace muster::fuzz
