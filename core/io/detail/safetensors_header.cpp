#include "muster/core/io/detail/safetensors_header.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/detail/safetensors_dtype.h"
#include "muster/core/io/json_value.h"

namespace muster::detail {
namespace {

namespace json = boost::json;
using Entry = SafetensorsHeader::Entry;

/// Throws a FileError.
struct Refusal {
  const std::filesystem::path& path;

  template <typename... Args>
  [[noreturn]] void operator()(fmt::format_string<Args...> text, Args&&... args) const {
    throw FileError(path, fmt::format(text, std::forward<Args>(args)...));
  }
};

json::object parseHeader(const Refusal& refuse, std::string_view text) {
  try {
    json::value value = parseJson(text);
    if (auto* object = value.if_object()) return std::move(*object);
    refuse("the header is not a JSON object but {}", describeJson(value));
  } catch (const InvalidArgument& error) {
    refuse("the header is {}", error.what());
  }
}

std::map<std::string, std::string> readMetadata(const Refusal& refuse, const json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr) refuse("__metadata__ is not an object of strings but {}", describeJson(value));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : *object) {
    if (!text.is_string())
      refuse("__metadata__ {} is not a string but {}", quoteJson(key), describeJson(text));
    metadata.emplace(key, text.get_string());
  }
  return metadata;
}

/// The non-negative integers of an array; empty if `value` is no such array.
std::optional<std::vector<std::int64_t>> wholeNumbers(const json::value* value) {
  const auto* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const auto& element : *array) {
    if (!element.is_int64() || element.get_int64() < 0) return std::nullopt;
    numbers.push_back(element.get_int64());
  }
  return numbers;
}

/// Bytes of an element in the file.
std::int64_t elementBytes(std::string_view type, DType dtype) {
  return type == kFloat16 || type == kBfloat16 ? 2 : static_cast<std::int64_t>(sizeOf(dtype));
}

/// Bytes of a tensor; empty if their number does not fit 64 bits.
std::optional<std::uint64_t> bytesOf(const std::vector<std::int64_t>& sizes, std::int64_t product) {
  for (const auto size : sizes)
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

Entry readEntry(const Refusal& refuse, std::string_view name, const json::value& value, OtherTypes others) {
  const auto* object = value.if_object();
  if (object == nullptr)
    refuse("tensor {}: expected an object, found {}", quoteJson(name), describeJson(value));
  for (const auto& [key, unused] : *object)
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      refuse("tensor {}: there is no field {}", quoteJson(name), quoteJson(key));

  const json::value* word = object->if_contains("dtype");
  if (word == nullptr || !word->is_string()) refuse("tensor {}: has no dtype", quoteJson(name));
  const std::string type(word->get_string());
  const auto dtype = safetensorsDType(type);
  if (!dtype && others == OtherTypes::Refuse)
    refuse("tensor {}: cannot read element type {}, only F32, F64, F16, BF16, U8 and I64", quoteJson(name),
           quoteJson(type));

  const auto sizes = wholeNumbers(object->if_contains("shape"));
  if (!sizes) refuse("tensor {}: its shape is not an array of whole numbers", quoteJson(name));
  if (sizes->size() > Shape::kMaxRank)
    refuse("tensor {}: has {} dimensions, at most {} can be read", quoteJson(name), sizes->size(),
           static_cast<int>(Shape::kMaxRank));
  const auto offsets = wholeNumbers(object->if_contains("data_offsets"));
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
    refuse("tensor {}: its data_offsets are not two whole numbers in order", quoteJson(name));

  Entry listing{.name = std::string(name),
                .type = type,
                .dtype = dtype.value_or(DType::UInt8),
                .shape = Shape(*sizes),
                .begin = static_cast<std::uint64_t>((*offsets)[0]),
                .end = static_cast<std::uint64_t>((*offsets)[1])};
  if (dtype && bytesOf(*sizes, elementBytes(type, *dtype)) != listing.end - listing.begin)
    refuse("tensor {}: its data_offsets span {}, which is not what {} {} takes", quoteJson(name),
           plural(listing.end - listing.begin, "byte"), type, listing.shape.toString());
  return listing;
}

/// The tensors must follow each other without gap or overlap, and fill the file.
void requireContiguous(const Refusal& refuse, const std::vector<Entry>& listings, std::uint64_t dataBytes) {
  std::uint64_t position = 0;
  for (const auto& listing : listings) {
    if (listing.end > dataBytes)
      refuse("tensor {}: its data end at byte {}, but the file has only {} (was it cut off?)",
             quoteJson(listing.name), listing.end, dataBytes);
    if (listing.begin < position)
      refuse("tensor {}: its data begin at byte {}, inside those of another tensor", quoteJson(listing.name),
             listing.begin);
    if (listing.begin > position)
      refuse("tensor {}: there is a gap of {} before its data", quoteJson(listing.name),
             plural(listing.begin - position, "byte"));
    position = listing.end;
  }
  if (position != dataBytes) refuse("it has {} after the last tensor", plural(dataBytes - position, "byte"));
}

}  // namespace

SafetensorsHeader parseSafetensorsHeader(std::string_view text, std::uint64_t dataBytes,
                                         const std::filesystem::path& path, OtherTypes others) {
  const Refusal refuse{path};
  SafetensorsHeader header;
  for (const auto& [name, value] : parseHeader(refuse, text)) {
    if (name == "__metadata__")
      header.metadata = readMetadata(refuse, value);
    else
      header.tensors.push_back(readEntry(refuse, name, value, others));
  }
  // Sort also by the end: an empty tensor begins at the same byte as the next tensor.
  std::ranges::stable_sort(header.tensors, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  requireContiguous(refuse, header.tensors, dataBytes);
  return header;
}

}  // namespace muster::detail
