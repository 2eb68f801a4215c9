#pragma once

#include <chrono>
#include <memory>

#include "muster/parallel/nodes.h"
#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/node_link.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// Elastic nodes of which this process is the only one.
class ElasticAlone {
 public:
  Nodes nodes() const { return Nodes(elastic_); }

 private:
  const TemporaryDirectory folder_;
  const std::shared_ptr<ElasticNodes> elastic_ = std::make_shared<ElasticNodes>(
      std::make_unique<DirectoryStore>(folder_ / "store"),
      Membership::Options{.silence = std::chrono::seconds(5), .patience = std::chrono::seconds(60)},
      [](NodeStore&, const Generation&) -> std::shared_ptr<NodeLink> { return nullptr; });
};

}  // namespace muster::test
