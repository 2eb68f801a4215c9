#include "muster/parallel/elastic/directory_store.h"

#include <fstream>
#include <random>
#include <system_error>

#include "muster/parallel/exchange/node_transport.h"

namespace muster {
namespace {

/// The end of the names of files that are not complete yet.
constexpr std::string_view kPart = ".part";
constexpr int kAttempts = 100;

std::string drawn() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

DirectoryStore::DirectoryStore(std::filesystem::path directory)
    : directory_(std::move(directory)), number_(drawn()) {
  std::error_code problem;
  std::filesystem::create_directories(directory_, problem);
  if (!std::filesystem::is_directory(directory_))
    throw NodeFailure(fmt::format("the store {} is not a directory and cannot be created: {}",
                                  directory_.string(), problem.message()));
}

void DirectoryStore::fail(const std::filesystem::path& path, const std::error_code& problem) {
  throw NodeFailure(fmt::format("the store: {} cannot be written: {}", path.string(), problem.message()));
}

std::filesystem::path DirectoryStore::writePart(const std::string& name, const std::string& text) {
  auto part = directory_ / fmt::format("{}.{}-{}{}", name, number_, ++parts_, kPart);
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  if (file) return part;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  fail(directory_ / name, std::make_error_code(std::errc::io_error));
}

/// A rename replaces the file; a hard link can be created by only one process. Repeated if another process
/// has erased the incomplete file meanwhile.
std::error_code DirectoryStore::place(const std::string& name, const std::string& text, bool replace) {
  for (int attempt = 1;; ++attempt) {
    const auto part = writePart(name, text);
    std::error_code problem, ignored;
    if (replace)
      std::filesystem::rename(part, directory_ / name, problem);
    else
      std::filesystem::create_hard_link(part, directory_ / name, problem);
    if (problem || !replace) std::filesystem::remove(part, ignored);
    if (problem != std::errc::no_such_file_or_directory || attempt == kAttempts) return problem;
  }
}

void DirectoryStore::put(const std::string& name, const std::string& text) {
  if (const auto problem = place(name, text, true)) fail(directory_ / name, problem);
}

bool DirectoryStore::create(const std::string& name, const std::string& text) {
  const auto problem = place(name, text, false);
  if (!problem) return true;
  if (problem == std::errc::file_exists) return false;
  fail(directory_ / name, problem);
}

std::string DirectoryStore::get(const std::string& name) {
  std::string text(kMostBytes, '\0');
  std::ifstream file(directory_ / name, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.gcount() == static_cast<std::streamsize>(text.size())) return {};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

void DirectoryStore::erase(const std::string& name) {
  std::error_code problem;
  std::filesystem::remove(directory_ / name, problem);
  if (problem) fail(directory_ / name, problem);
}

std::vector<std::string> DirectoryStore::files(const std::string& prefix) const {
  std::vector<std::string> found;
  std::error_code problem;
  for (std::filesystem::directory_iterator it(directory_, problem), end; !problem && it != end;
       it.increment(problem))
    if (auto name = it->path().filename().string(); name.starts_with(prefix))
      found.push_back(std::move(name));
  if (problem)
    throw NodeFailure(
        fmt::format("the store: {} cannot be read: {}", directory_.string(), problem.message()));
  return found;
}

std::vector<std::string> DirectoryStore::names(const std::string& prefix) {
  auto found = files(prefix);
  std::erase_if(found, [](const std::string& name) { return name.ends_with(kPart); });
  return found;
}

void DirectoryStore::eraseAll(const std::string& prefix) {
  for (const auto& name : files(prefix)) erase(name);
}

}  // namespace muster
