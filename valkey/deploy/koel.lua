-- The fields of INFO koel, for the option --script of Prometheus' redis_exporter, which exports no module's section by itself.
local values = {}
for name, value in string.gmatch(redis.call('INFO', 'koel'), '(koel_[%w_]+):([%d.]+)') do
    values[#values + 1] = name
    values[#values + 1] = value
end
return values
