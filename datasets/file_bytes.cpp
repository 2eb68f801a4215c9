#include "muster/datasets/file_bytes.h"

#include <algorithm>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

namespace io = boost::iostreams;

/// Receives the unpacked bytes.
struct Sink {
  using char_type = char;
  using category = io::sink_tag;
  std::vector<std::uint8_t>* bytes;
  std::streamsize write(const char* data, std::streamsize size) {
    bytes->insert(bytes->end(), data, data + size);
    return size;
  }
};

/// The unpacked size stored in the file's last four bytes, limited by deflate's compression ratio: a damaged
/// size must not reserve unlimited memory.
std::size_t promisedSize(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kMostPerByte = 1032;  // zlib's technical notes
  if (bytes.size() < 18) return 0;
  const auto* tail = bytes.data() + bytes.size() - 4;
  const std::size_t promised =
      tail[0] | std::size_t{tail[1]} << 8 | std::size_t{tail[2]} << 16 | std::size_t{tail[3]} << 24;
  return std::min(promised, bytes.size() * kMostPerByte);
}

std::string_view problemOf(const io::gzip_error& error) {
  switch (error.error()) {
    case io::gzip::bad_crc:
      return "the contents do not have the checksum that the file gives";
    case io::gzip::bad_header:
      return "something that is not gzip follows the data, or the header is damaged";
    case io::gzip::bad_footer:
      return "it is truncated";
    default:
      return error.zlib_error_code() == io::zlib::buf_error ? "it is truncated"
                                                            : "the compressed data are damaged";
  }
}

}  // namespace

std::vector<std::uint8_t> readFile(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);  // also fails for a directory
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    const auto reason = error ? error.message() : std::string(std::strerror(errno));
    throw FileError(path, "cannot be read: " + reason);
  }
  std::vector<std::uint8_t> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(file.gcount()) != size)
    throw FileError(path, fmt::format("reading stopped after {} of {} bytes", file.gcount(), size));
  return bytes;
}

bool isGzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

std::vector<std::uint8_t> unpackGzip(std::span<const std::uint8_t> bytes, const std::filesystem::path& path) {
  if (!isGzip(bytes))
    throw FileError(path, fmt::format("not a gzip file, its {} bytes begin otherwise", bytes.size()));
  std::vector<std::uint8_t> contents;
  contents.reserve(promisedSize(bytes));
  try {
    io::filtering_streambuf<io::input> source;
    source.push(io::gzip_decompressor());
    source.push(io::array_source(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    io::copy(source, Sink{&contents}, 1 << 16);
  } catch (const io::gzip_error& error) {
    throw FileError(path, fmt::format("damaged gzip file of {} bytes: {}", bytes.size(), problemOf(error)));
  } catch (const BOOST_IOSTREAMS_FAILURE& error) {
    throw FileError(path, fmt::format("damaged gzip file of {} bytes: {}", bytes.size(), error.what()));
  }
  return contents;
}

FileContents readContents(const std::filesystem::path& path) {
  auto bytes = readFile(path);
  if (isGzip(bytes)) bytes = unpackGzip(bytes, path);
  return {path, std::move(bytes)};
}

}  // namespace muster
