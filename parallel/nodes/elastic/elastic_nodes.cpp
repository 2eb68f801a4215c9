#include "muster/parallel/nodes/elastic/elastic_nodes.h"

#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"

namespace muster {

ElasticNodes::ElasticNodes(std::unique_ptr<NodeStore> store, Membership::Options options, Connect connect)
    : store_(std::move(store)), options_(std::move(options)), connect_(std::move(connect)) {}

void ElasticNodes::begin(const std::string& common) {
  auto options = options_;
  // Processes that take each other for dead after different times could not agree who trains.
  options.common = fmt::format("{}silence: {} ms\n", common, options.silence.count());
  node_ = 0;
  logInfo("waiting in {} for at least {}", store_->describe(), plural(options.minNodes, "node"));
  membership_ = std::make_unique<Membership>(*store_, std::move(options));
}

bool ElasticNodes::next(const std::function<bool()>& stopped) {
  if (link_ && !link_->failed()) link_->end();  // all nodes leave the generation at the same round
  link_.reset();
  for (;;) {
    generation_ = {};
    try {
      auto generation = membership_->next(stopped);
      if (!generation) return false;
      generation_ = *std::move(generation);
    } catch (const NodeFailure&) {
      node_ = membership_->place();
      throw;
    }
    node_ = generation_.node;
    try {
      link_ = connect_(*store_, generation_);
      return true;
    } catch (const NodeFailure& failure) {
      logWarning("generation {} of {} nodes could not be connected: {}", generation_.number,
                 generation_.members.size(), failure.what());
      if (const auto* const missing = dynamic_cast<const NotConnected*>(&failure))
        for (const int node : missing->nodes())
          membership_->lost(generation_.members.at(static_cast<std::size_t>(node)));
    }
  }
}

void ElasticNodes::requireCurrent() {
  try {
    membership_->requireCurrent();
  } catch (const NodeFailure&) {
    node_ = membership_->place();
    throw;
  }
}

void ElasticNodes::end(bool well) {
  if (well && link_ && !link_->failed()) link_->end();
  if (link_ && !well) link_->fail();
  link_.reset();
  generation_ = {};
  membership_.reset();
}

}  // namespace muster
