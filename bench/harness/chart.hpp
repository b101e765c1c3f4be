#pragma once

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

} // namespace kumi::bench
