#include "muster/core/interop/dl4j/detail/zip_file.h"

#include <zip.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/input_file.h"

namespace muster::dl4j::detail {
namespace {

constexpr std::uint64_t kMostCompressed = std::uint64_t{1} << 36;

struct CloseEntry {
  void operator()(zip_file* file) const { zip_fclose(file); }
};

std::string textOf(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

/// The bytes of an archive that libzip writes to memory.
std::string archiveOf(std::span<const std::pair<std::string, std::string>> files,
                      const std::filesystem::path& path) {
  zip_error_t error;
  zip_error_init(&error);
  const auto failed = [&](const char* why) {
    return FileError(path, fmt::format("cannot be packed: {}", why));
  };
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (target == nullptr) throw failed(zip_error_strerror(&error));
  zip_source_keep(target);
  zip_t* archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  if (archive == nullptr) {
    zip_source_free(target);
    zip_source_free(target);
    throw failed(zip_error_strerror(&error));
  }
  bool good = true;
  for (const auto& [name, bytes] : files) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const auto index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    good = good && index >= 0;
    // A fixed date: the same model gives the same bytes.
    if (index >= 0) zip_file_set_mtime(archive, static_cast<zip_uint64_t>(index), 315619200, 0);
  }
  good = good && zip_close(archive) == 0;
  if (!good) zip_discard(archive);
  std::string bytes;
  zip_stat_t stat;
  if (good && zip_source_stat(target, &stat) == 0 && zip_source_open(target) == 0) {
    bytes.resize(stat.size);
    good = zip_source_read(target, bytes.data(), stat.size) == static_cast<zip_int64_t>(stat.size);
    zip_source_close(target);
  } else {
    good = false;
  }
  zip_source_free(target);
  if (!good) throw failed("libzip refused it");
  return bytes;
}

}  // namespace

void ZipFile::Discard::operator()(zip* archive) const {
  zip_discard(archive);
}

ZipFile::ZipFile(const std::filesystem::path& path) : path_(path) {
  const InputFile regular(path);  // a pipe would wait
  if (regular.size() > kMostCompressed) throw FileError(path, "is too large for a zip file of a model");
  int code = 0;
  archive_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive_) throw FileError(path, fmt::format("cannot be read as a zip file: {}", textOf(code)));
}

bool ZipFile::has(std::string_view name) const {
  return zip_name_locate(archive_.get(), std::string(name).c_str(), 0) >= 0;
}

std::optional<std::string> ZipFile::read(const std::string& name, std::uint64_t most) const {
  const auto index = zip_name_locate(archive_.get(), name.c_str(), 0);
  if (index < 0) return std::nullopt;
  const auto fail = [&](std::string_view why) { return FileError(path_, fmt::format("{}: {}", name, why)); };
  const std::unique_ptr<zip_file, CloseEntry> file(
      zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0));
  if (!file) throw fail(zip_strerror(archive_.get()));
  std::string bytes;
  for (;;) {  // the size that the archive states may be wrong: memory grows with what is there
    const std::size_t before = bytes.size();
    const std::size_t step = std::clamp<std::size_t>(before, 4096, std::size_t{1} << 26);
    bytes.resize(before + step);
    const auto got = zip_fread(file.get(), bytes.data() + before, step);
    if (got < 0) throw fail(zip_file_strerror(file.get()));
    bytes.resize(before + static_cast<std::size_t>(got));
    if (bytes.size() > most) throw fail(fmt::format("has more than the {} bytes that belong there", most));
    if (got == 0) return bytes;
  }
}

void writeZip(const std::filesystem::path& path, std::span<const std::pair<std::string, std::string>> files) {
  writeFileAtomically(path, archiveOf(files, path));
}

}  // namespace muster::dl4j::detail
