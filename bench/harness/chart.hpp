#pragma once

#include "harness/table.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kumi::bench {

struct Curve {
    std::string name;
    std::vector<std::pair<double, double>> points; // x from left to right
};

/// Curves as a picture (SVG), both axes by powers: of two to the right, of ten upwards. All values are above zero.
std::string chart(const std::string& title, const std::string& x_name, const std::string& y_name,
                  const std::vector<Curve>& curves);

/// Writes a picture into `folder`. A note of the table tells of it.
void draw(const std::string& folder, const std::string& file, const std::string& picture, Table& table);

} // namespace kumi::bench
