-- An audit record as CEF, values escaped as the CEF specification says: "\" and "|" in the header, "\", "=" and line breaks in
-- the extension.
local in_header = { ["\\"] = "\\\\", ["|"] = "\\|" }
local in_extension = { ["\\"] = "\\\\", ["="] = "\\=", ["\n"] = "\\n", ["\r"] = "\\r" }

local function head(value)
  if value:find("[\\|]") then return (value:gsub("[\\|]", in_header)) end
  return value
end

local function ext(value)
  if value:find("[\\=\r\n]") then return (value:gsub("[\\=\r\n]", in_extension)) end
  return value
end

function cef(tag, timestamp, r)
  local message = table.concat({
    "CEF:0|fluent-bit|fluent-bit|5|", head(r.action), "|", head(r.action), "|", head(r.severity),
    "|rt=", ext(r.timestamp), " externalId=", ext(r.id), " act=", ext(r.action), " outcome=", ext(r.result),
    " suser=", ext(r.actor.name), " suid=", ext(r.actor.id), " spriv=", ext(r.actor.role), " src=", ext(r.source_ip),
    " requestClientApplication=", ext(r.user_agent), " cs1Label=request_id cs1=", ext(r.request_id),
    " cs3Label=resource_type cs3=", ext(r.resource.type), " cs4Label=resource cs4=", ext(r.resource.name),
    " cs5Label=resource_uid cs5=", ext(r.resource.id), " msg=", ext(r.changes.note),
  })
  return 2, timestamp, { message = message }
end
