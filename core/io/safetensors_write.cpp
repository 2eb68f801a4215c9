#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/io/detail/safetensors_dtype.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

namespace json = boost::json;

void requireWritable(const std::vector<Safetensors::Entry>& entries) {
  std::set<std::string_view> names;
  for (const auto& [name, values] : entries) {
    require(name != "__metadata__", "safetensors: a tensor cannot be called __metadata__");
    require(names.insert(name).second, "safetensors: there are two tensors called \"{}\"", name);
    require(values.defined() && values.layout() == Layout::RowMajor && values.device().isCpu(),
            "safetensors: \"{}\" is {}, which cannot be written", name, values.toString());
  }
}

/// The header's length and the header, padded with spaces to a multiple of 8 bytes.
std::string makeHeader(const std::vector<const Safetensors::Entry*>& entries,
                       const std::map<std::string, std::string>& metadata) {
  json::object header;
  if (!metadata.empty()) {
    json::object& strings = header["__metadata__"].emplace_object();
    for (const auto& [key, text] : metadata) strings[key] = text;
  }
  std::uint64_t offset = 0;
  for (const auto* entry : entries) {
    const Tensor& values = entry->values;
    const std::uint64_t end = offset + values.bytes();
    header[entry->name] = {{"dtype", detail::safetensorsName(values.dtype())},
                           {"shape", json::array(values.shape().begin(), values.shape().end())},
                           {"data_offsets", json::array{offset, end}}};
    offset = end;
  }
  std::string text = json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

void writeSafetensors(const std::filesystem::path& path, const Safetensors& contents) {
  detail::onFile("writeSafetensors", path, [&] {
    requireWritable(contents.tensors);
    std::vector<const Safetensors::Entry*> entries;
    for (const auto& entry : contents.tensors) entries.push_back(&entry);
    std::ranges::stable_sort(entries, std::ranges::greater{},
                             [](const auto* entry) { return sizeOf(entry->values.dtype()); });
    AtomicFile file(path);
    file.write(makeHeader(entries, contents.metadata));
    for (const auto* entry : entries)
      file.write({static_cast<const std::byte*>(entry->values.raw()), entry->values.bytes()});
    file.commit();
  });
}

}  // namespace muster
