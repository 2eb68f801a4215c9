#include "tests/core/interop/dl4j/numpy_arrays.h"

#include <cstring>
#include <regex>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"

namespace muster::test {
namespace {

Tensor arrayIn(const std::string& npy) {
  require(npy.starts_with("\x93NUMPY"), "not an array of NumPy");
  const std::size_t length = static_cast<unsigned char>(npy[8]) | static_cast<unsigned char>(npy[9]) << 8;
  const std::string header = npy.substr(10, length);
  require(header.find("'<f4'") != header.npos && header.find("False") != header.npos,
          "not float32 in row order: {}", header);
  const auto open = header.find('(');
  const std::string sizes = header.substr(open, header.find(')') - open);
  const std::regex number("[0-9]+");
  std::vector<std::int64_t> shape;
  for (auto it = std::sregex_iterator(sizes.begin(), sizes.end(), number); it != std::sregex_iterator(); ++it)
    shape.push_back(std::stoll(it->str()));
  Tensor array = Tensor::empty(Shape(std::span<const std::int64_t>(shape)));
  require(npy.size() == 10 + length + array.bytes(), "an array of another size");
  std::memcpy(array.raw(), npy.data() + 10 + length, array.bytes());
  return array;
}

}  // namespace

std::map<std::string, Tensor> readArrays(const std::filesystem::path& npz,
                                         const std::vector<std::string>& names) {
  const dl4j::detail::ZipFile zip(npz);
  std::map<std::string, Tensor> arrays;
  for (const auto& name : names)
    if (const auto bytes = zip.read(name + ".npy", 1 << 24)) arrays[name] = arrayIn(*bytes);
  return arrays;
}

}  // namespace muster::test
