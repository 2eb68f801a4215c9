#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/json/value.hpp>
#include <cerrno>
#include <optional>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/json_value.h"
#include "muster/core/io/detail/safetensors_dtype.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

namespace json = boost::json;
using detail::quoteJson;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own library

/// A file open for reading; every failure is a FileError.
class Source {
 public:
  explicit Source(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse("cannot be read: {}", std::generic_category().message(errno));
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    ::close(descriptor_);
    refuse("cannot be read: it is not a regular file");
  }
  ~Source() { ::close(descriptor_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::uint64_t size() const { return size_; }

  void read(void* target, std::uint64_t bytes) {
    auto* to = static_cast<std::byte*>(target);
    while (bytes > 0) {
      const ssize_t got = ::read(descriptor_, to, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse("cannot be read: {}", std::generic_category().message(errno));
      if (got == 0) refuse("ended while it was read");
      to += got;
      bytes -= static_cast<std::uint64_t>(got);
    }
  }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw FileError(path_, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  const std::filesystem::path& path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// A tensor as the header tells it.
struct Listing {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // bytes behind the header
};

std::string readHeader(Source& file) {
  if (file.size() < kLengthBytes)
    file.refuse("is not a safetensors file: {} bytes are too short", file.size());
  std::uint64_t length = 0;
  file.read(&length, kLengthBytes);
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes)
    file.refuse("is not a whole safetensors file: its header of {} bytes does not fit a file of {} bytes",
                length, file.size());
  std::string header(length, '\0');
  file.read(header.data(), length);
  return header;
}

json::object parseHeader(const Source& file, std::string_view text) {
  try {
    json::value value = detail::parseJson(text);
    if (auto* object = value.if_object()) return std::move(*object);
    file.refuse("the header is not a JSON object but {}", detail::describeJson(value));
  } catch (const InvalidArgument& error) {
    file.refuse("the header is {}", error.what());
  }
}

std::map<std::string, std::string> readMetadata(const Source& file, const json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr)
    file.refuse("__metadata__ is not an object of strings but {}", detail::describeJson(value));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : *object) {
    if (!text.is_string())
      file.refuse("__metadata__ {} is not a string but {}", quoteJson(key), detail::describeJson(text));
    metadata.emplace(key, text.get_string());
  }
  return metadata;
}

/// The whole numbers, none negative, of an array; nothing if `value` is not such an array.
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

/// Bytes of a tensor, or nothing where their number does not fit 64 bits.
std::optional<std::uint64_t> bytesOf(const std::vector<std::int64_t>& sizes, DType dtype) {
  std::int64_t product = static_cast<std::int64_t>(sizeOf(dtype));
  for (const auto size : sizes)
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

Listing readListing(const Source& file, std::string_view name, const json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr)
    file.refuse("tensor {}: expected an object, found {}", quoteJson(name), detail::describeJson(value));
  for (const auto& [key, unused] : *object)
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      file.refuse("tensor {}: there is no field {}", quoteJson(name), quoteJson(key));

  const json::value* word = object->if_contains("dtype");
  if (word == nullptr || !word->is_string()) file.refuse("tensor {}: has no dtype", quoteJson(name));
  const auto dtype = detail::safetensorsDType(word->get_string());
  if (!dtype)
    file.refuse("tensor {}: cannot read element type {}, only F32, F64, U8 and I64", quoteJson(name),
                quoteJson(word->get_string()));

  const auto sizes = wholeNumbers(object->if_contains("shape"));
  if (!sizes) file.refuse("tensor {}: its shape is not an array of whole numbers", quoteJson(name));
  if (sizes->size() > Shape::kMaxRank)
    file.refuse("tensor {}: has {} dimensions, at most {} can be read", quoteJson(name), sizes->size(),
                static_cast<int>(Shape::kMaxRank));
  const auto offsets = wholeNumbers(object->if_contains("data_offsets"));
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
    file.refuse("tensor {}: its data_offsets are not two whole numbers in order", quoteJson(name));

  Listing listing{std::string(name), *dtype, Shape(*sizes), static_cast<std::uint64_t>((*offsets)[0]),
                  static_cast<std::uint64_t>((*offsets)[1])};
  if (bytesOf(*sizes, *dtype) != listing.end - listing.begin)
    file.refuse("tensor {}: its data_offsets span {} bytes, which is not what {} {} takes", quoteJson(name),
                listing.end - listing.begin, toString(*dtype), listing.shape.toString());
  return listing;
}

/// The tensors must follow each other without gap or overlap, and fill the file.
void requireContiguous(const Source& file, const std::vector<Listing>& listings, std::uint64_t dataBytes) {
  std::uint64_t position = 0;
  for (const auto& listing : listings) {
    if (listing.end > dataBytes)
      file.refuse("tensor {}: its data end at byte {}, but the file has only {} (was it cut off?)",
                  quoteJson(listing.name), listing.end, dataBytes);
    if (listing.begin < position)
      file.refuse("tensor {}: its data begin at byte {}, inside those of another tensor",
                  quoteJson(listing.name), listing.begin);
    if (listing.begin > position)
      file.refuse("tensor {}: there is a gap of {} bytes before its data", quoteJson(listing.name),
                  listing.begin - position);
    position = listing.end;
  }
  if (position != dataBytes) file.refuse("there are {} bytes behind the last tensor", dataBytes - position);
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Entry::name);
  return found == tensors.end() ? nullptr : &found->values;
}

Safetensors readSafetensors(const std::filesystem::path& path) {
  Source file(path);
  const std::string header = readHeader(file);
  Safetensors contents;
  std::vector<Listing> listings;
  for (const auto& [name, value] : parseHeader(file, header)) {
    if (name == "__metadata__")
      contents.metadata = readMetadata(file, value);
    else
      listings.push_back(readListing(file, name, value));
  }
  // By the end too: a tensor without elements begins where the next one does.
  std::ranges::stable_sort(listings, {}, [](const Listing& l) { return std::pair(l.begin, l.end); });
  requireContiguous(file, listings, file.size() - kLengthBytes - header.size());
  for (auto& listing : listings) {
    Tensor tensor = Tensor::empty(listing.shape, listing.dtype);
    file.read(tensor.raw(), listing.end - listing.begin);
    contents.add(std::move(listing.name), std::move(tensor));
  }
  return contents;
}

}  // namespace muster
