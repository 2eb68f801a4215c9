#pragma once

#include "tests/support/standard.h"

namespace muster::test {

/// Files of a zip by their names.
using ZipEntries = std::vector<std::pair<std::string, std::string>>;

/// The files of a model's zip that exist.
ZipEntries entriesOf(const std::filesystem::path& zip);
std::string& entry(ZipEntries& entries, const std::string& name);

/// `text` with `from` replaced at its only place.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// Values as ND4J writes a row of this type, FLOAT, DOUBLE or HALF (whose values must be small integers).
std::string arrayBytes(const std::vector<float>& values, const std::string& type = "FLOAT");

/// JSON of layers there, with an Sgd of rate 0.5. @param more  further members: `"hasBias":false`.
std::string denseJson(const std::string& name, int in, int out, const std::string& more = {});
std::string outputJson(const std::string& name, int in, int out, const std::string& more = {});
std::string layerJson(const std::string& name, const std::string& className, const std::string& more = {});
/// A chain of layers.
std::string chainJson(const std::vector<std::string>& layers, const std::string& preprocessors = {});
/// A layer of a graph.
std::string layerVertex(const std::string& layer, const std::string& preprocessor = "null");

}  // namespace muster::test
