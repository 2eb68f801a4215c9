#include "tests/fuzz/container.h"

#include <fmt/format.h>
#include <zlib.h>

#include <boost/json/serialize.hpp>

#include "tests/fuzz/hostile_values.h"
#include "tests/fuzz/json_changes.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;

constexpr std::size_t kLength = sizeof(std::uint64_t);
constexpr std::size_t kMostData = 1 << 16;

/// Bytes of a tensor's shape and type; nothing if these are hostile.
std::optional<std::size_t> sizeOf(const json::object& tensor) {
  const auto* const dtype = tensor.if_contains("dtype");
  const auto* const shape = tensor.if_contains("shape");
  if (!dtype || !dtype->is_string() || !shape || !shape->is_array()) return std::nullopt;
  std::size_t bytes = dtype->get_string() == "U8" ? 1 : dtype->get_string() == "F32" ? 4 : 8;
  for (const auto& size : shape->get_array()) {
    if (!size.is_int64() || size.get_int64() < 0) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size.get_int64()), &bytes))
      return std::nullopt;
  }
  return bytes <= kMostData ? std::optional(bytes) : std::nullopt;
}

/// The part of `data` that is a tensor's, by its offsets.
std::optional<std::string_view> valuesOf(const json::object& tensor, std::string_view data) {
  const auto* const offsets = tensor.if_contains("data_offsets");
  if (!offsets || !offsets->is_array() || offsets->get_array().size() != 2) return std::nullopt;
  const auto &begin = offsets->get_array()[0], &end = offsets->get_array()[1];
  if (!begin.is_int64() || !end.is_int64() || begin.get_int64() < 0 || end.get_int64() < begin.get_int64() ||
      end.get_int64() > static_cast<std::int64_t>(data.size()))
    return std::nullopt;
  return data.substr(static_cast<std::size_t>(begin.get_int64()),
                     static_cast<std::size_t>(end.get_int64() - begin.get_int64()));
}

float asFloat(double number) {
  constexpr double kMost = 3e38;
  return static_cast<float>(std::isfinite(number) ? std::clamp(number, -kMost, kMost) : number);
}

}  // namespace

std::size_t TensorNumbers::width() const {
  return dtype_ == "I64" || dtype_ == "F64" ? 8 : dtype_ == "F32" ? 4 : 1;
}

std::size_t TensorNumbers::hostile() const {
  return dtype_ == "I64" ? hostileIntegers().size() : width() > 1 ? hostileDoubles().size() : 2;
}

void TensorNumbers::set(std::size_t element, std::size_t choice) const {
  const auto write = [&](auto number) {
    std::memcpy(bytes_.data() + element * width(), &number, sizeof number);
  };
  if (dtype_ == "I64") return write(hostileIntegers()[choice]);
  if (dtype_ == "F64") return write(hostileDoubles()[choice]);
  if (dtype_ == "F32") return write(asFloat(hostileDoubles()[choice]));
  write(choice == 0 ? '\0' : 'a');
}

std::optional<Container> Container::in(ByteSpan bytes) {
  const std::string_view all = textOf(bytes);
  std::uint64_t length = 0;
  if (all.size() < kLength) return std::nullopt;
  std::memcpy(&length, all.data(), kLength);
  if (length > all.size() - kLength) return std::nullopt;
  auto header = jsonIn(all.substr(kLength, length));
  if (!header || !header->is_object()) return std::nullopt;
  return Container{.header = std::move(header->get_object()),
                   .data = std::string(all.substr(kLength + length))};
}

Bytes Container::bytes() const {
  const std::string text = json::serialize(header);
  const std::uint64_t length = text.size();
  std::string all(reinterpret_cast<const char*>(&length), kLength);
  return bytesOf(all + text + data);
}

json::value* Container::metadata(std::string_view name) {
  auto* const all = header.if_contains("__metadata__");
  return all && all->is_object() ? all->get_object().if_contains(name) : nullptr;
}

void Container::settleOffsets() {
  std::size_t at = 0;
  for (auto& [name, value] : header) {
    auto* const tensor = value.if_object();
    const auto size = tensor && name != "__metadata__" ? sizeOf(*tensor) : std::nullopt;
    if (!size || at + *size > kMostData) continue;
    (*tensor)["data_offsets"] = {static_cast<std::int64_t>(at), static_cast<std::int64_t>(at + *size)};
    at += *size;
  }
  data.resize(at);
}

void Container::settleChecksums() {
  auto* const all = metadata("muster.crc32");
  if (!all) return;
  json::object sums;
  for (const auto& [name, value] : header)
    if (const auto* const tensor = value.if_object(); tensor && name != "__metadata__")
      if (const auto values = valuesOf(*tensor, data))
        sums[name] = fmt::format(
            "{:08x}", ::crc32_z(0, reinterpret_cast<const Bytef*>(values->data()), values->size()));
  *all = json::serialize(sums);
  header["__metadata__"].get_object().erase(
      "muster.checked");  // as earlier versions wrote it: the header has no checksum
}

std::vector<std::string> Container::tensors(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : header)
    if (const auto* const tensor = value.if_object();
        tensor && name.starts_with(prefix) && valuesOf(*tensor, data))
      names.emplace_back(name);
  return names;
}

TensorNumbers Container::numbers(std::string_view tensor) {
  const auto& description = header.at(tensor).get_object();
  const auto values = valuesOf(description, data).value_or(std::string_view(data).substr(0, 0));
  const auto* const dtype = description.if_contains("dtype");
  return {dtype && dtype->is_string() ? std::string_view(dtype->get_string()) : "",
          std::span(data).subspan(static_cast<std::size_t>(values.data() - data.data()), values.size())};
}

void Container::replace(std::string_view tensor, std::int64_t number) {
  const auto* const found = header.if_contains(tensor);
  const auto values = found && found->is_object() ? valuesOf(found->get_object(), data) : std::nullopt;
  if (values && values->size() >= sizeof number)
    std::memcpy(data.data() + (values->data() - data.data()), &number, sizeof number);
}

void Container::mutateNumber(std::string_view prefix, Draw& draw) {
  const auto names = tensors(prefix);
  const bool typed = !names.empty() && !draw.oneIn(8);
  const auto found = typed ? numbers(draw.of(names)) : TensorNumbers(draw.oneIn(2) ? "I64" : "F64", data);
  if (found.size() > 0) found.set(draw.below(found.size()), draw.below(found.hostile()));
}

void Container::mutateHeader(Draw& draw, std::size_t times) {
  json::value changed = header;
  while (times-- > 0) mutateJson(changed, draw);
  if (changed.is_object()) header = changed.get_object();
}

}  // namespace muster::fuzz
