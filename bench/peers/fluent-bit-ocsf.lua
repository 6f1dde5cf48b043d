-- An audit record as an OCSF 1.8.0 event, much as sluice makes it: Authentication for logins, else API Activity, and what has
-- no attribute in `unmapped`. The work's records need no more classes than these.
local severities = { info = { 1, "Informational" }, low = { 2, "Low" }, medium = { 3, "Medium" }, high = { 4, "High" } }
local activities = { create = { 1, "Create" }, update = { 3, "Update" }, delete = { 4, "Delete" } }

local function millis(text)
  local year, month, day, hour, minute, second, ms = text:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)%.(%d+)Z$")
  return os.time({ year = year, month = month, day = day, hour = hour, min = minute, sec = second }) * 1000 + tonumber(ms)
end

function ocsf(tag, timestamp, r)
  local severity = severities[r.severity] or { 99, "Other" }
  local user = {
    name = r.actor.name, uid = r.actor.id, email_addr = r.actor.email, type_id = 1, type = "User",
  }
  local event = {
    time = millis(r.timestamp),
    severity_id = severity[1], severity = severity[2],
    status_id = r.result == "success" and 1 or 2, status = r.result == "success" and "Success" or "Failure",
    metadata = {
      version = "1.8.0", product = { name = "audit" }, log_name = "audit", original_event_uid = r.id,
      original_time = r.timestamp, event_code = r.action, uid = r.id,
    },
    src_endpoint = { ip = r.source_ip },
    unmapped = { actor = { role = r.actor.role }, changes = { note = r.changes.note }, network = r.network },
  }
  if r.action == "user.login" then
    event.class_uid, event.class_name, event.category_uid = 3002, "Authentication", 3
    event.category_name, event.activity_id, event.activity_name = "Identity & Access Management", 1, "Logon"
    event.type_uid, event.type_name = 300201, "Authentication: Logon"
    event.user, event.service = user, { name = "audit" }
    event.http_request = { uid = r.request_id, user_agent = r.user_agent }
    event.unmapped.resource, event.unmapped.changes = r.resource, r.changes
  else
    local activity = activities[r.action:match("(%a+)$")] or { 99, "Other" }
    event.class_uid, event.class_name, event.category_uid = 6003, "API Activity", 6
    event.category_name, event.activity_id, event.activity_name = "Application Activity", activity[1], activity[2]
    event.type_uid, event.type_name = 600300 + activity[1], "API Activity: " .. activity[2]
    event.actor = { user = user }
    event.api = { operation = r.action, request = { uid = r.request_id } }
    event.resources = { {
      uid = r.resource.id, name = r.resource.name, type = r.resource.type,
      data = { before = r.changes.before, after = r.changes.after },
    } }
    event.http_request = { user_agent = r.user_agent }
  end
  return 2, timestamp, event
end
