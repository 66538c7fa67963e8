mod ranges;
mod reading;
