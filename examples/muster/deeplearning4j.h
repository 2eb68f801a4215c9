#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "muster/core/nn/network.h"

namespace program {

/// As dl4j::load and dl4j::save. @throws InvalidArgument if this program was built without muster::dl4j.
std::unique_ptr<muster::Network> fromDeeplearning4j(const std::filesystem::path& path,
                                                    const std::vector<muster::Shape>& shapes);
void toDeeplearning4j(muster::Network& network, const std::filesystem::path& path);

}  // namespace program
